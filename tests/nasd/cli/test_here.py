"""The run a verb is about when nobody names one."""

from __future__ import annotations

from pathlib import PurePath

from nasd.cli.here import branch_at

MOUNTS = """\
proc /proc proc rw 0 0
agent-nas:coder/r1 /desk fuse.agent-nas rw 0 0
agent-nas:coder/r2 /desk/inner fuse.agent-nas rw 0 0
agent-nas:main /with\\040space fuse.agent-nas rw 0 0
elsewhere:coder/r9 /other fuse rw 0 0
"""


def test_the_innermost_mount_around_a_directory_says_the_branch() -> None:
    assert branch_at(PurePath("/desk/src"), MOUNTS) == "coder/r1"
    assert branch_at(PurePath("/desk/inner/deep"), MOUNTS) == "coder/r2"
    assert branch_at(PurePath("/with space/x"), MOUNTS) == "main"


def test_a_directory_outside_of_every_mount_says_nothing() -> None:
    for place in ("/", "/desktop", "/other", "/proc/1"):
        assert branch_at(PurePath(place), MOUNTS) is None
