"""Files that nobody needs any more: cached contents beyond the limit, drafts of the dead, upper files without a node.

1. A file goes only when no process can want it by its name: what is open stays readable, what is cached is made again.
2. A process makes an upper file before its row, and a draft before its name; so both go only after `GRACE` seconds untouched.
   What was staged and neither used nor let go is forgotten after `KEPT` seconds.
3. Nothing here is needed for correctness: a death anywhere leaves more to remove.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from store.engines.git.database import Database

GRACE = 600
"""Seconds that a file without an owner is left alone."""

KEPT = 7 * 24 * 3600
"""Seconds that staged bytes are kept."""

_KNOWN = "SELECT upper FROM node WHERE branch = ?1 AND upper IS NOT NULL UNION ALL SELECT upper FROM staged WHERE branch = ?1"


class Swept(NamedTuple):
    """What was removed."""

    files: int
    bytes: int

    def plus(self, other: Swept) -> Swept:
        """Return both together."""
        return Swept(self.files + other.files, self.bytes + other.bytes)


NOTHING = Swept(0, 0)


class _Found(NamedTuple):
    used: float
    bytes: int
    path: str


def evict_contents(folder: Path, limit: int, now: float) -> Swept:
    """Bring the cache of committed contents down to `limit` bytes, longest unused first, and drop abandoned drafts."""
    found = list(_scan(folder))
    drafts = [file for file in found if file.path.endswith(".tmp") and file.used < now - GRACE]
    contents = [file for file in found if not file.path.endswith(".tmp")]
    return _remove(drafts).plus(_remove(_beyond(contents, limit)))


def sweep_upper_files(folder: Path, database: Database, now: float) -> Swept:
    """Remove upper files that nothing of their branch names, and the folders of branches that are gone."""
    swept = NOTHING
    if database.select_one("SELECT 1 FROM staged WHERE created < ?", (int(now) - KEPT,)):
        with database.transaction() as connection:
            connection.execute("DELETE FROM staged WHERE created < ?", (int(now) - KEPT,))
    for entry in _entries(folder):
        if entry.name.isdigit():
            swept = swept.plus(_sweep_branch(Path(entry.path), int(entry.name), database, now - GRACE))
    return swept


def measure_folder(folder: Path) -> int:
    """Return the bytes on disk that the files directly in a folder take."""
    return sum(_measure(entry).bytes for entry in _entries(folder))


def _sweep_branch(folder: Path, branch: int, database: Database, before: float) -> Swept:
    files = [_measure(entry) for entry in _entries(folder)]
    known = {str(row[0]) for row in database.select(_KNOWN, (branch,))}
    alive = database.select_one("SELECT 1 FROM branch WHERE id = ?", (branch,)) is not None
    kept = known | {"fence"} if alive else set()
    swept = _remove(file for file in files if file.used < before and Path(file.path).name not in kept)
    if not alive:
        _remove_empty(folder)
    return swept


def _beyond(files: list[_Found], limit: int) -> Iterator[_Found]:
    excess = sum(file.bytes for file in files) - limit
    heapq.heapify(files)
    while excess > 0 and files:
        oldest = heapq.heappop(files)
        excess -= oldest.bytes
        yield oldest


def _scan(folder: Path) -> Iterator[_Found]:
    for fan in _entries(folder):
        if fan.is_dir(follow_symlinks=False):
            yield from (_measure(entry) for entry in _entries(Path(fan.path)))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _measure(entry: os.DirEntry[str]) -> _Found:
    """Return what a file takes and when it was last used; one that went meanwhile takes nothing."""
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return _Found(0.0, 0, entry.path)
    return _Found(max(found.st_atime, found.st_mtime, found.st_ctime), found.st_blocks * 512, entry.path)


def _remove(files: Iterable[_Found]) -> Swept:
    count = total = 0
    for file in files:
        if _removed(os.unlink, file.path):
            count, total = count + 1, total + file.bytes
    return Swept(count, total)


def _remove_empty(folder: Path) -> None:
    if not _entries(folder):
        _removed(os.rmdir, os.fspath(folder))


def _removed(remove: Callable[[str], None], path: str) -> bool:
    try:
        remove(path)
    except FileNotFoundError:
        return False
    return True
