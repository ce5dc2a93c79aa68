"""Whether policy, keys, record and trees are out of everybody's reach but the appliance's: looked at before it opens them.

1. The data directory belongs to who runs the daemon and to nobody else; on the way to it nobody else can put something in its place.
2. Nothing in it is a symlink, and no other file system lies over a part of it: what is opened is what was looked at.
3. It is not reached by another way: not inside a mounted branch, not bound to a second place.
4. What must not be so stops the start, and says how to put it right. What only looks wrong (a share of another program that contains it)
   is told by ``nas doctor`` and in the log.
5. Where a copy is kept for the worst day (anchors, an export) must not be where an agent can write, and what is imported must not
   contain the data directory.
6. Judging is pure; `survey` looks.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from nasd.config import Settings

MOUNTED_BRANCH = "fuse.agent-nas"
"""The kind of file system that a mounted branch is."""
_OTHERS = 0o022
_PRIVATE = 0o077
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it must be. `fatal` stops the start."""

    what: str
    hint: str
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory as it was found."""

    path: PurePath
    mode: int
    owner: int
    device: tuple[int, int] = (0, 0)

    @property
    def is_symlink(self) -> bool:
        """Tell whether it is a symlink."""
        return stat.S_ISLNK(self.mode)


@dataclass(frozen=True, slots=True)
class Mounted:
    """One line of ``/proc/self/mountinfo``: what part (`root`) of which file system is seen at `point`."""

    point: PurePath
    root: PurePath
    device: tuple[int, int]
    kind: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found: the way to the data directory, what lies in it, file systems, and folders that are shared or kept copies in."""

    home: PurePath
    runner: int
    way: Sequence[Entry]
    inside: Sequence[Entry]
    secrets: Sequence[Entry]
    mounts: Sequence[Mounted]
    shared: Sequence[PurePath] = ()
    copies: Sequence[PurePath] = ()


def judge(survey: Survey) -> list[Finding]:
    """Return everything that is not as it must be, the worst first."""
    found = [*_judge_way(survey), *_judge_inside(survey), *_judge_mounts(survey), *_judge_copies(survey), *_judge_shares(survey)]
    return sorted(found, key=lambda finding: not finding.fatal)


def _judge_way(survey: Survey) -> Iterator[Finding]:
    for entry in survey.way:
        own = entry.path == survey.home
        if entry.owner not in {survey.runner, 0} or (own and entry.owner != survey.runner):
            yield Finding(
                f"{entry.path} belongs to user {entry.owner}, who could exchange what is in it", f"chown it to user {survey.runner}"
            )
        elif entry.is_symlink:
            continue  # where it leads is on the way as well, and only its owner can change it
        elif own and entry.mode & _PRIVATE:
            yield Finding(f"{entry.path} is open to others (mode {stat.S_IMODE(entry.mode):o})", f"chmod 700 {entry.path}")
        elif entry.mode & _OTHERS and not entry.mode & stat.S_ISVTX:
            mode = stat.S_IMODE(entry.mode)
            yield Finding(
                f"others may write to {entry.path} (mode {mode:o}), and so exchange the data directory", f"chmod go-w {entry.path}"
            )


def _judge_inside(survey: Survey) -> Iterator[Finding]:
    for entry in (*survey.inside, *survey.secrets):
        if entry.is_symlink:
            yield Finding(f"{entry.path} is a symlink", "move what it leads to here: the data directory is one piece")
        elif entry.owner != survey.runner:
            yield Finding(f"{entry.path} belongs to user {entry.owner}", f"chown it to user {survey.runner}")
        elif stat.S_ISDIR(entry.mode) and entry.mode & _OTHERS:
            yield Finding(f"others may write to {entry.path} (mode {stat.S_IMODE(entry.mode):o})", f"chmod 700 {entry.path}")
    for entry in survey.secrets:
        if not entry.is_symlink and entry.mode & _PRIVATE:
            yield Finding(
                f"{entry.path} holds a secret and is open to others (mode {stat.S_IMODE(entry.mode):o})", f"chmod 600 {entry.path}"
            )


def _judge_mounts(survey: Survey) -> Iterator[Finding]:
    home = survey.home
    for mount in survey.mounts:
        if home in mount.point.parents:
            yield Finding(f"a file system ({mount.kind}) lies over {mount.point}", f"umount {mount.point}, or move the data directory")
    holder = _holder(survey.mounts, home)
    if holder is None:
        return
    if holder.kind == MOUNTED_BRANCH:
        yield Finding(f"{home} is inside a mounted branch ({holder.point}), which agents write to", "name a folder elsewhere with NAS_HOME")
    there = holder.root / home.relative_to(holder.point)
    for mount in survey.mounts:
        outside = mount.point != home and home not in mount.point.parents and mount.point not in home.parents
        if outside and mount.device == holder.device and (mount.root == there or there in mount.root.parents):
            yield Finding(f"{mount.point} shows a part of the data directory a second time", f"umount {mount.point}")


def _judge_copies(survey: Survey) -> Iterator[Finding]:
    for folder in survey.copies:
        if reason := unsafe_copy(folder, survey.home, survey.mounts):
            yield Finding(f"a copy for the worst day would be kept in {folder}, {reason}", "name a folder on another disk or machine")


def _judge_shares(survey: Survey) -> Iterator[Finding]:
    for folder in survey.shared:
        if folder == survey.home or folder in survey.home.parents or survey.home in folder.parents:
            yield Finding(f"another program shares {folder}, which holds the data directory", "share another folder", fatal=False)


def unsafe_copy(folder: PurePath, home: PurePath, mounts: Sequence[Mounted]) -> str:
    """Return why a copy that has to survive an agent must not lie in a folder; empty where it may."""
    if folder == home or home in folder.parents:
        return "which is in the data directory itself"
    holder = _holder(mounts, folder)
    return f"which is in a mounted branch ({holder.point})" if holder is not None and holder.kind == MOUNTED_BRANCH else ""


def overlap(source: PurePath, home: PurePath) -> str:
    """Return how a folder that is to be imported and the data directory overlap, in words; empty where they do not."""
    if source == home or home in source.parents:
        return "is in the data directory"
    return "contains the data directory" if source in home.parents else ""


def _holder(mounts: Iterable[Mounted], path: PurePath) -> Mounted | None:
    """Return the mount that a path is on: the last one of the longest point."""
    best: Mounted | None = None
    for mount in mounts:
        on = mount.point == path or mount.point in path.parents
        if on and (best is None or len(mount.point.parts) >= len(best.point.parts)):
            best = mount
    return best


# -- what is there ------------------------------------------------------------------------------------------------------


def survey(settings: Settings) -> Survey:
    """Look at everything that `judge` judges. What is not there is left out."""
    home = Path(os.path.realpath(settings.home))
    inside = [home / part.name for part in (settings.store, settings.trust, settings.run, settings.log, settings.checkpoints)]
    secrets = [home / settings.owner_token_file.name, *sorted((home / "trust" / "keys").glob("*"))]
    return Survey(
        home=home,
        runner=os.geteuid(),
        way=_look_all(_way_to(settings.home.absolute(), home)),
        inside=_look_all([*inside, home / "trust" / "keys"]),
        secrets=_look_all(secrets),
        mounts=read_mounts(),
        shared=list(_shares()),
        copies=[PurePath(os.path.realpath(folder)) for folder in settings.anchor_folders],
    )


def read_mounts() -> list[Mounted]:
    """Return the mounts that this process sees."""
    with Path("/proc/self/mountinfo").open(encoding="utf-8", errors="surrogateescape") as lines:
        return parse_mounts(lines)


def parse_mounts(lines: Iterable[str]) -> list[Mounted]:
    """Return the mounts of lines as ``/proc/self/mountinfo`` has them; what is no such line is passed over."""
    found = []
    for line in lines:
        before, separator, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if not separator or len(fields) < 6 or not kinds:
            continue
        major, _, minor = fields[2].partition(":")
        if major.isdecimal() and minor.isdecimal():
            found.append(Mounted(PurePath(_unescape(fields[4])), PurePath(_unescape(fields[3])), (int(major), int(minor)), kinds[0]))
    return found


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _way_to(named: Path, home: Path) -> list[Path]:
    """Return every directory from the root to the data directory, as it was named and as it really lies."""
    return sorted({*named.parents, named, *home.parents, home})


def _look_all(paths: Iterable[Path]) -> list[Entry]:
    return [entry for entry in map(_look, paths) if entry is not None]


def _look(path: Path) -> Entry | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return Entry(path, found.st_mode, found.st_uid, (os.major(found.st_dev), os.minor(found.st_dev)))


def _shares() -> Iterator[PurePath]:
    """Yield the folders that the NFS server and Samba of this machine share, where they are there."""
    for line in _lines(Path("/etc/exports")):
        if line.startswith("/"):
            yield PurePath(line.split()[0])
    for line in _lines(Path("/etc/samba/smb.conf")):
        name, _, value = line.partition("=")
        if name.strip().lower() in {"path", "directory"} and value.strip().startswith("/"):
            yield PurePath(value.strip())


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return []
