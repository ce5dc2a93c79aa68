"""Runs litmus against the door and prints what passed; the exit status is 0 when nothing failed and nothing warned."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.interfaces.webdav.dav import dav_house

GROUPS = ("basic", "copymove", "props", "locks", "http")
INSTALLED = Path("/usr/libexec/litmus")
UPLOADED = Path("/usr/share/litmus/htdocs")
TIMEOUT = 300
_SUMMARY = re.compile(r"of (\d+) tests run: (\d+) passed, (\d+) failed")
_REMARK = re.compile(r"^.*(?:WARNING|FAIL).*$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How one group went."""

    group: str
    run: int
    passed: int
    remarks: tuple[str, ...]


def run_group(programs: Path, group: str, url: str, user: str, password: str) -> Outcome:
    """Run one group of tests in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "htdocs").symlink_to(UPLOADED)
        done = subprocess.run(
            [programs / group, url, user, password], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    summary = _SUMMARY.search(done.stdout)
    if summary is None:
        return Outcome(group, 0, 0, (done.stdout[-500:] + done.stderr[-500:],))
    return Outcome(group, int(summary[1]), int(summary[2]), tuple(line.strip() for line in _REMARK.findall(done.stdout)))


def main(arguments: list[str]) -> int:
    """Run every group and print a table. Returns the exit status."""
    programs = Path(arguments[0]) if arguments else INSTALLED
    outcomes = []
    with tempfile.TemporaryDirectory() as folder, dav_house(Path(folder)) as house:
        for group in GROUPS:
            run, dav = house.start()
            outcomes.append(run_group(programs, group, f"http://{dav.address}{dav.base}", run.lease, run.secret))
            print(f"{group:<10} {outcomes[-1].passed:>4} of {outcomes[-1].run}", *outcomes[-1].remarks, sep="\n  ", flush=True)
    ran, passed = sum(outcome.run for outcome in outcomes), sum(outcome.passed for outcome in outcomes)
    warnings = sum(len(outcome.remarks) for outcome in outcomes)
    print(f"{'in all':<10} {passed:>4} of {ran}, {warnings} remarks")
    return 0 if passed == ran and not warnings else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
