"""Renames: which old path a new path stands for, composed over several steps, or detected where nobody watched.

1. A rename map leads from a new path to the old one. A directory is one pair that covers everything below it;
   a pair of its own for something below wins over the directory's.
2. Recorded renames are facts. Detection is for imported history only, where no one saw the rename.
3. A pair may lead from a path to itself: it says that the path stayed although a directory above it was renamed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from store.trees import DIRECTORY, TreeEntry, split_path

Renames = Mapping[bytes, bytes]
Similarity = Callable[[TreeEntry, TreeEntry], float]
"""Returns how much of the first file is left in the second, from 0 to 1."""

NONE: Renames = {}
"""No renames."""


def paths_above(path: bytes) -> Iterator[bytes]:
    """Yield the path itself, then each directory above it, the root excepted."""
    while path:
        yield path
        path = split_path(path)[0]


def match_pair(renames: Renames, path: bytes) -> bytes | None:
    """Return the most specific new path of the map that `path` is at or below, or None."""
    return next((above for above in paths_above(path) if above in renames), None)


def translate_path(renames: Renames, path: bytes) -> bytes:
    """Return the old path that a new path stands for; itself when no pair covers it."""
    above = match_pair(renames, path) if renames else None
    return path if above is None else renames[above] + path[len(above) :]


def invert_renames(renames: Renames) -> dict[bytes, bytes]:
    """Return the map from old paths to new ones."""
    return {old: new for new, old in renames.items()}


def compose_renames(first: Renames, then: Renames) -> dict[bytes, bytes]:
    """Return the renames of two steps as one map: `first` from the start to the middle, `then` from there to the end."""
    moved_on = invert_renames(then)
    composed = {translate_path(moved_on, middle): old for middle, old in first.items()}
    composed.update({new: translate_path(first, middle) for new, middle in then.items()})
    return simplify_renames(composed)


def simplify_renames(renames: Renames) -> dict[bytes, bytes]:
    """Return the fewest pairs that say the same: none for what a directory's pair, or none at all, says already."""
    kept: dict[bytes, bytes] = {}
    for new in sorted(renames):
        directory, name = split_path(new)
        inherited = translate_path(kept, directory)
        if renames[new] != (inherited + b"/" + name if inherited else name):
            kept[new] = renames[new]
    return kept


def detect_renames(
    deleted: Iterable[tuple[bytes, TreeEntry]],
    added: Iterable[tuple[bytes, TreeEntry]],
    similarity: Similarity | None = None,
    threshold: float = 0.5,
    limit: int = 10_000,
) -> dict[bytes, bytes]:
    """Guess which added paths are deleted ones under another name.

    The same content is a rename, the same last name first. With `similarity`, what is left over is compared, best
    pairs first, as long as there are no more than `limit` pairs to compare. Directories and symlinks are never guessed by similarity.
    """
    gone, fresh = dict(deleted), dict(added)
    renames = _pair_equal(gone, fresh)
    if similarity is not None:
        left = {path: entry for path, entry in gone.items() if path not in set(renames.values()) and _is_file(entry)}
        new = {path: entry for path, entry in fresh.items() if path not in renames and _is_file(entry)}
        if len(left) * len(new) <= limit:
            renames.update(_pair_similar(left, new, similarity, threshold))
    return renames


def _is_file(entry: TreeEntry) -> bool:
    return entry.mode & 0o170000 == 0o100000


def _pair_equal(gone: Mapping[bytes, TreeEntry], fresh: Mapping[bytes, TreeEntry]) -> dict[bytes, bytes]:
    sources: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for path in sorted(gone):
        if gone[path].mode != DIRECTORY:
            sources[gone[path].content].append(path)
    renames: dict[bytes, bytes] = {}
    for same_name in (True, False):
        for path in sorted(fresh.keys() - renames.keys()):
            candidates = sources.get(fresh[path].content, [])
            source = next((old for old in candidates if not same_name or split_path(old)[1] == split_path(path)[1]), None)
            if source is not None and fresh[path].mode != DIRECTORY:
                candidates.remove(source)
                renames[path] = source
    return renames


def _pair_similar(
    gone: Mapping[bytes, TreeEntry], fresh: Mapping[bytes, TreeEntry], similarity: Similarity, threshold: float
) -> dict[bytes, bytes]:
    scores = [(-similarity(before, after), new, old) for old, before in gone.items() for new, after in fresh.items()]
    renames: dict[bytes, bytes] = {}
    used: set[bytes] = set()
    for score, new, old in sorted(scores):
        if -score >= threshold and new not in renames and old not in used:
            renames[new] = old
            used.add(old)
    return renames
