"""A disk that is full: nothing is announced, so nothing happens, and what was recorded stays sound."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trust.samples import NOW
from trust import Trust
from trust.errors import RecorderUnavailable

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, check=False).returncode:
        pytest.skip("this root may not mount")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_refuses_the_act_and_leaves_a_sound_record(small: Path) -> None:
    trust = Trust.open(small / "trust")
    announced = 0
    with pytest.raises(RecorderUnavailable):
        for announced in range(100_000):
            trust.intend("merge", None, {"n": announced, "what": "x" * 2000}, NOW)
    (small / "room").write_bytes(b"")
    with pytest.raises(RecorderUnavailable):
        trust.intend("merge", None, {"n": -1, "what": "x" * 100_000}, NOW)
    size, _ = trust.head()
    assert size == announced > 20, "what was acknowledged is there, and nothing else"
    assert trust.verify().ok
    with contextlib.suppress(RecorderUnavailable):  # the last sync may find no room; what was acknowledged had been synced before
        trust.close()
    again = Trust.open(small / "trust")
    assert again.verify().ok and again.head()[0] == announced
    again.close()
