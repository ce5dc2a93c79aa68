"""What differs between two trees, path by path.

1. The walk reads only directories that differ; equal content is equal whatever lies below.
2. Files and symlinks are listed; a directory only when it came or went without entries. Directories with entries speak through them.
3. A recorded rename shows as one difference when the old name no longer holds what it held and nothing else is lost at the
   new name; otherwise it shows as what happened to each name. So each old entry is `old` once, each new one `new` once.
4. Differences are ordered by path.
"""

from __future__ import annotations

from typing import NamedTuple

from store.model import ChangeKind
from store.renames import NONE, Renames, match_pair
from store.trees import DIRECTORY, EMPTY, Listing, ReadTree, TreeEntry, join_path


class Difference(NamedTuple):
    """One path that differs. `origin` is the former path of a rename; `old` and `new` are None where nothing is there."""

    kind: ChangeKind
    path: bytes
    origin: bytes | None
    old: TreeEntry | None
    new: TreeEntry | None


def diff_trees(read: ReadTree, old: bytes | None, new: bytes | None, renames: Renames = NONE) -> list[Difference]:
    """Return the differences from `old` to `new`, contents of root directories; None is the empty tree."""
    changed = _compare(read, old, new)
    origins = _settle_renames(changed, renames) if renames else {}
    moved = set(origins.values())
    found = []
    for path, (before, after) in changed.items():
        origin = origins.get(path)
        if origin is not None:
            found.append(Difference(ChangeKind.RENAMED, path, origin, changed[origin][0], after))
            continue
        kept = None if path in moved else before
        if kept is not None or after is not None:
            found.append(Difference(_classify(kept, after), path, None, kept, after))
    return sorted(found, key=_path_of)


def _path_of(difference: Difference) -> bytes:
    return difference.path


def _classify(old: TreeEntry | None, new: TreeEntry | None) -> ChangeKind:
    if old is None:
        return ChangeKind.ADDED
    return ChangeKind.DELETED if new is None else ChangeKind.MODIFIED


Pair = tuple[TreeEntry | None, TreeEntry | None]


def _compare(read: ReadTree, old: bytes | None, new: bytes | None) -> dict[bytes, Pair]:
    """Return each path that differs with its old and new entry."""
    changed: dict[bytes, Pair] = {}
    pending = [] if old == new else [(b"", old, new)]
    while pending:
        directory, one, other = pending.pop()
        before = EMPTY if one is None else read(one)
        after = EMPTY if other is None else read(other)
        for name, was, now in _differing(before, after):
            path = join_path(directory, name)
            below_was = was.content if was is not None and was.mode == DIRECTORY else None
            below_now = now.content if now is not None and now.mode == DIRECTORY else None
            if below_was is not None or below_now is not None:
                pending.append((path, below_was, below_now))
            pair = (_own(read, was, below_now), _own(read, now, below_was))
            if pair != (None, None):
                changed[path] = pair
    return changed


def _differing(before: Listing, after: Listing) -> list[tuple[bytes, TreeEntry | None, TreeEntry | None]]:
    find_before, find_after = before.get, after.get
    found: list[tuple[bytes, TreeEntry | None, TreeEntry | None]] = [
        (name, was, find_after(name)) for name, was in before.items() if find_after(name) != was
    ]
    found.extend((name, None, now) for name, now in after.items() if find_before(name) is None)
    return found


def _own(read: ReadTree, entry: TreeEntry | None, other_directory: bytes | None) -> TreeEntry | None:
    """Return the entry where it is a difference of its own: not a directory with entries, nor one that is on both sides."""
    if entry is None or entry.mode != DIRECTORY:
        return entry
    return entry if other_directory is None and not read(entry.content) else None


def _settle_renames(changed: dict[bytes, Pair], renames: Renames) -> dict[bytes, bytes]:
    """Return new path -> old path for every recorded rename that rule 3 lets show as one."""
    wanted = sorted(_candidates(changed, renames))
    origins: dict[bytes, bytes] = {}
    taken: set[bytes] = set()
    for _, path, origin in wanted:
        if origin not in taken:
            origins[path] = origin
            taken.add(origin)
    return _drop_overwriting(changed, origins)


def _candidates(changed: dict[bytes, Pair], renames: Renames) -> list[tuple[int, bytes, bytes]]:
    """Return (less is more specific, new path, old path) of every pair whose both ends differ."""
    found = []
    for path, (_, after) in changed.items():
        above = match_pair(renames, path) if after is not None else None
        if above is None or after is None:
            continue
        origin = renames[above] + path[len(above) :]
        before = changed.get(origin, (None, None))[0]
        if origin != path and before is not None and (before.mode == DIRECTORY) == (after.mode == DIRECTORY):
            found.append((len(path) - len(above), path, origin))
    return found


def _drop_overwriting(changed: dict[bytes, Pair], origins: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Remove renames onto a path whose old entry did not move away itself, until none is left."""
    kept = dict(origins)
    destination = {origin: path for path, origin in origins.items()}
    pending = [path for path in kept if changed[path][0] is not None and path not in destination]
    while pending:
        origin = kept.pop(pending.pop(), None)
        if origin is None:
            continue
        destination.pop(origin)
        if origin in kept and changed[origin][0] is not None:
            pending.append(origin)
    return kept
