"""The README's first command, as a stranger runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.conftest import needs_fuse

ROOT = Path(__file__).resolve().parents[2]


@needs_fuse
def test_the_demo_tells_the_whole_story() -> None:
    done = subprocess.run([str(ROOT / "script" / "demo")], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("merged - ", "gated: ", "refused - ", "zen-is-done (.nas/policy.yaml@", "ok            yes", "all of it"):
        assert told in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
