"""Keys in S3's order (the order of their UTF-8 bytes), read from a tree as far as a page needs.

1. A directory is read when the walk comes to it and not before; directories that cannot hold a wanted key are not read at all.
2. Inside a directory a subdirectory sorts as its name with a slash behind it: then the keys of a depth-first walk are in order.
3. With ``/`` as delimiter a directory that rolls up into a common prefix is told without being read.
4. A directory itself is a key (ending with a slash) when S3 was told so, or when it is empty and was made by hand.
"""

from __future__ import annotations

import stat
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from interfaces.port import Attributes, Workspace
from interfaces.s3.keys import decode_name, decode_part, is_beside_directory, is_part, without_mark
from interfaces.s3.sidecars import SIDECAR
from interfaces.s3.tree import IMPLIED, descend

SLASH = b"/"


@dataclass(frozen=True, slots=True)
class Found:
    """A key with its file or directory, or (without attributes) a common prefix."""

    key: bytes
    attributes: Attributes | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which keys a walk yields: those that start with `prefix` and come after `after`, rolled up by `delimiter` (empty: not)."""

    prefix: bytes = b""
    after: bytes = b""
    delimiter: bytes = b""


_Entry = tuple[bytes, Attributes]
"""A file by its segment, or a directory by its segment and a slash."""

_BY_SEGMENT = itemgetter(0)


def walk_keys(workspace: Workspace, wanted: Wanted) -> Iterator[Found]:
    """Yield the wanted keys and common prefixes, in order."""
    start = wanted.prefix[: wanted.prefix.rfind(SLASH) + 1]
    node = descend(workspace, start)
    if node is None:
        return
    folds = wanted.delimiter == SLASH
    found = _walk(workspace, node, start, wanted, folds=folds)
    yield from found if folds or not wanted.delimiter else _roll_up(found, wanted)


def is_directory_key(workspace: Workspace, directory: Attributes, *, empty: bool) -> bool:
    """Tell whether a directory is itself a key (rule 4)."""
    xattrs = workspace.xattrs(directory.node)
    return SIDECAR in xattrs or (empty and IMPLIED not in xattrs)


def _walk(workspace: Workspace, node: int, base: bytes, wanted: Wanted, *, folds: bool) -> Iterator[Found]:
    entries = _entries(workspace, node)
    if base:
        yield from _own_key(workspace, node, base, wanted, entries)
    for segment, attributes in _from(entries, base, wanted):
        key = base + segment
        if not _can_match(key, wanted.prefix):
            if key > wanted.prefix:
                return
            continue
        if not segment.endswith(SLASH):
            if key > wanted.after:
                yield Found(key, attributes)
        elif folds and len(key) > len(wanted.prefix):
            yield from _folded(workspace, attributes.node, key, wanted)
        else:
            yield from _walk(workspace, attributes.node, key, wanted, folds=folds)


def _own_key(workspace: Workspace, node: int, base: bytes, wanted: Wanted, entries: list[_Entry]) -> Iterator[Found]:
    """Yield the key of the directory itself, unless a file in it holds its content."""
    if base <= wanted.after or not base.startswith(wanted.prefix) or (entries and not entries[0][0]):
        return
    directory = workspace.attributes(node)
    if is_directory_key(workspace, directory, empty=not entries):
        yield Found(base, directory)


def _folded(workspace: Workspace, node: int, key: bytes, wanted: Wanted) -> Iterator[Found]:
    """Yield the common prefix `key` unless what is after `wanted.after` leaves nothing of it."""
    if key > wanted.after:
        yield Found(key, None)
    elif wanted.after.startswith(key) and wanted.after != key:
        rest = _walk(workspace, node, key, Wanted(key, wanted.after), folds=False)
        if next(rest, None) is not None:
            yield Found(key, None)


def _from(entries: list[_Entry], base: bytes, wanted: Wanted) -> list[_Entry]:
    """Return the entries from the first one that can hold a key after `wanted.after`."""
    if not wanted.after.startswith(base):
        return entries if wanted.after < base else []
    rest = wanted.after[len(base) :]
    position = bisect_left(entries, rest, key=_BY_SEGMENT)
    above = rest[: rest.find(SLASH) + 1]
    if above and position and entries[position - 1][0] == above:
        position -= 1
    return entries[position:]


def _can_match(key: bytes, prefix: bytes) -> bool:
    return key.startswith(prefix) or (key.endswith(SLASH) and prefix.startswith(key))


def _roll_up(found: Iterator[Found], wanted: Wanted) -> Iterator[Found]:
    """Yield keys, those with the delimiter behind the prefix once as their common prefix."""
    last = b""
    for each in found:
        end = each.key.find(wanted.delimiter, len(wanted.prefix))
        if end < 0:
            yield each
            continue
        rolled = each.key[: end + len(wanted.delimiter)]
        if rolled not in (last, wanted.after):
            yield Found(rolled, None)
        last = rolled


def _entries(workspace: Workspace, node: int) -> list[_Entry]:
    """Return what a directory holds for S3, in the order of keys."""
    found: dict[bytes, Attributes] = {}
    aside: list[_Entry] = []
    for name, attributes in workspace.list(node):
        kind = stat.S_IFMT(attributes.st_mode)
        if kind == stat.S_IFDIR:
            _add_directory(workspace, found, b"", name, attributes)
        elif kind == stat.S_IFREG and (segment := decode_name(name)) is not None:
            if is_beside_directory(name):
                aside.append((segment, attributes))
            else:
                found[segment] = attributes
    for segment, attributes in aside:
        found.setdefault(segment, attributes)
    return sorted(found.items(), key=_BY_SEGMENT)


def _add_directory(workspace: Workspace, found: dict[bytes, Attributes], piece: bytes, name: bytes, attributes: Attributes) -> None:
    if is_part(name):
        _add_parts(workspace, found, piece + (decode_part(name) or b""), attributes.node)
        return
    segment = piece + (decode_part(name) or b"") if piece else decode_name(name)
    if segment is not None and not is_beside_directory(name):
        found[segment + SLASH] = attributes


def _add_parts(workspace: Workspace, found: dict[bytes, Attributes], piece: bytes, node: int) -> None:
    """Add the entries whose segments are too long for one name (`keys`, rule 2)."""
    for name, attributes in workspace.list(node):
        if stat.S_ISDIR(attributes.st_mode):
            if decode_part(name) is not None:
                _add_directory(workspace, found, piece, name, attributes)
            continue
        rest = decode_part(without_mark(name))
        if rest is not None and stat.S_ISREG(attributes.st_mode):
            found.setdefault(piece + rest, attributes)
