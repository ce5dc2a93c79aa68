"""The public suite: Debian's litmus against a served branch, every test and no warning."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interfaces.webdav.dav import DavHouse

GROUPS = {"basic": 16, "copymove": 13, "props": 30, "locks": 41, "http": 4}


@pytest.mark.skipif(shutil.which("litmus") is None, reason="litmus is not installed (apt-get install litmus)")
@pytest.mark.parametrize("group", GROUPS)
def test_litmus_finds_nothing(door: DavHouse, tmp_path: Path, group: str) -> None:
    run, dav = door.start()
    url = f"http://{dav.address}{dav.base}"
    command = ["litmus", "-k", url, run.lease, run.secret]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, env={"TESTS": group, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=120
    )
    summary = re.search(r"of (\d+) tests run: (\d+) passed, (\d+) failed", done.stdout)
    assert summary is not None, done.stdout + done.stderr
    assert [int(number) for number in summary.groups()] == [GROUPS[group], GROUPS[group], 0], done.stdout
    assert "WARNING" not in done.stdout, done.stdout
