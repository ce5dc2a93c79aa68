"""Mountpoints: which are refused, how a dead one is recovered, when one is usable, and how one is given back.

1. A mountpoint is an empty directory of its own. It is never inside the NAS's own data nor above it, symlinks resolved:
   the mount would hide or contain what it is made of.
2. Nothing here asks a mount a question it could hang on before the mount table says that it is alive to be asked.
3. Failures are `Fault`: what is wrong, with what, and what to do.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from interfaces.faults import Fault, Kind

FILE_SYSTEM = "fuse.agent-nas"
"""How our mounts name their type in the mount table."""

_DEAD = frozenset((errno.ENOTCONN, errno.ECONNABORTED))
_SECONDS_BETWEEN_LOOKS = 0.01
_UNMOUNT_SECONDS = 30
_SYMLINKS_MAX = 40


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table; `device` is the mount's `st_dev`."""

    point: str
    device: int
    type: str
    source: str


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that keeps a mount busy."""

    pid: int
    name: str


def list_mounts() -> list[Mount]:
    """Return the mounts of this process's namespace, in the order they were made."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        return [_parse_mount(line) for line in table]


def find_mount(path: Path) -> Mount | None:
    """Return what is mounted at a path, topmost; None when nothing is. Does not touch the mount."""
    point = str(_locate(path))
    return next((mount for mount in reversed(list_mounts()) if mount.point == point), None)


def check_mountpoint(path: Path, private: Sequence[Path], *, allow_nonempty: bool = False) -> Path:
    """Return the mountpoint with symlinks resolved when a branch may be mounted there.

    `private` are the directories the NAS keeps its own data in. Raises `Kind.NOT_FOUND`, `Kind.NOT_A_DIRECTORY`,
    `Kind.NOT_EMPTY`, `Kind.BUSY` where something is mounted, `Kind.INVALID` inside or above the NAS's own data.
    """
    point = path.resolve()
    for own in (directory.resolve() for directory in private):
        if point == own or own in point.parents or point in own.parents:
            relation = "above" if point in own.parents else "inside"
            raise Fault(Kind.INVALID, f"{path} is {relation} the NAS's own data at {own}", hint="choose a directory elsewhere")
    if not point.exists():
        raise Fault(Kind.NOT_FOUND, f"{path} does not exist", hint=f"mkdir -p {path}")
    if not point.is_dir():
        raise Fault(Kind.NOT_A_DIRECTORY, f"{path} is not a directory")
    mount = find_mount(point)
    if mount is not None:
        raise Fault(Kind.BUSY, f"{mount.source} is mounted at {path} already", hint=f"nas umount {path}")
    if not allow_nonempty and any(point.iterdir()):
        raise Fault(Kind.NOT_EMPTY, f"{path} is not empty; a mount would hide what is in it", hint="choose an empty directory")
    return point


def is_dead(path: Path) -> bool:
    """Tell whether a mount is left at a path whose server is gone."""
    try:
        # Not stat: the kernel answers that from its cache, for the dead too.
        os.statvfs(path)
    except OSError as error:
        return error.errno in _DEAD
    return False


def recover_mountpoint(path: Path) -> bool:
    """Take away dead mounts at a path and return whether there was any. Repeats do nothing."""
    recovered = False
    while is_dead(path):
        unmount(path, lazy=True)
        recovered = True
    return recovered


def wait_usable(path: Path, seconds: float) -> None:
    """Return once our mount at a path answers. Raises `Kind.UNAVAILABLE` after `seconds`, or at once when it died."""
    deadline = time.monotonic() + seconds
    while not _is_usable(path):
        if time.monotonic() >= deadline:
            raise Fault(Kind.UNAVAILABLE, f"the mount at {path} was not usable within {seconds:g} seconds", hint="see the daemon's log")
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def unmount(path: Path, *, lazy: bool = False) -> None:
    """Take away the topmost mount at a path; `lazy` leaves open files working until closed.

    Does nothing where nothing is mounted. Raises `Kind.BUSY`, naming who holds it.
    """
    if find_mount(path) is None:
        return
    subprocess.run(_unmount_command(_locate(path), lazy=lazy), check=False, capture_output=True, timeout=_UNMOUNT_SECONDS)
    left = find_mount(path)
    if left is None or lazy:
        return
    holders = find_holders(left)
    names = ", ".join(f"{holder.name} ({holder.pid})" for holder in holders) or "some process"
    raise Fault(Kind.BUSY, f"{path} is in use by {names}", hint="let it finish or leave the directory, then try again")


def find_holders(mount: Mount) -> list[Holder]:
    """Return the processes with a directory or file of the mount open, as far as this user may see."""
    return [Holder(int(pid.name), _process_name(pid)) for pid in Path("/proc").glob("[0-9]*") if _holds(pid, mount)]


def _is_usable(path: Path) -> bool:
    mount = find_mount(path)
    if mount is None or mount.type != FILE_SYSTEM:
        return False
    if is_dead(path):
        raise Fault(Kind.UNAVAILABLE, f"the mount at {path} died while starting", hint="see the daemon's log")
    return True


def _parse_mount(line: str) -> Mount:
    # 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw: any number of optional fields before the dash.
    before, _, after = line.partition(" - ")
    fields, (kind, source, *_rest) = before.split(" "), after.split(" ")
    major, _, minor = fields[2].partition(":")
    return Mount(_unescape(fields[4]), os.makedev(int(major), int(minor)), kind, _unescape(source))


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _locate(path: Path) -> Path:
    """Return the path with symlinks resolved, without asking the last name, which may be a mount, anything but readlink.

    The kernel answers readlink on the root of a mount by itself; a stat it would pass on.
    """
    located = path.absolute()
    for _ in range(_SYMLINKS_MAX):
        located = located.parent.resolve() / located.name
        try:
            target = os.readlink(located)
        except OSError:
            return located
        located = located.parent / target
    raise Fault(Kind.LOOP, f"{path} leads through too many symlinks")


def _unmount_command(path: Path, *, lazy: bool) -> list[str]:
    fusermount = shutil.which("fusermount3")
    if os.geteuid() != 0 and fusermount is not None:
        return [fusermount, "-u", *(["-z"] if lazy else []), "--", str(path)]
    return ["umount", *(["-l"] if lazy else []), "--", str(path)]


def _process_name(process: Path) -> str:
    try:
        return (process / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "a process that just ended"


def _holds(process: Path, mount: Mount) -> bool:
    try:
        return any(os.stat(link).st_dev == mount.device for link in _links(process))
    except OSError:
        return False


def _links(process: Path) -> Iterator[Path]:
    yield process / "cwd"
    yield process / "root"
    yield from (process / "fd").iterdir()
