"""Where keys live in a tree: finding them, making room for them, tidying up after them.

1. An object is a regular file. Nothing else on the way is followed or replaced: a symlink or a pipe in the way is a refusal.
2. A directory that a put has to make is marked as implied. It goes with its last key; one that somebody made by hand stays.
3. An object whose name a directory needs, or has, lives beside it (`keys.beside_directory`). The object is moved there before the
   directory appears, so that at every moment one of the two looks of a reader finds it. Where both names have a file, the plain one is
   the object and the other is what it was before.
4. A key that ends with a slash and has no content is its directory, unless a condition or content asks for a file.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.port import ROOT, Attributes, Workspace
from interfaces.s3.faults import S3Fault
from interfaces.s3.keys import beside_directory, encode_key, is_beside_directory

IMPLIED = b"user.s3.implied"
"""The mark of a directory that only its keys keep."""

_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key is, or is going to be; `standing` is what is there now."""

    parent: int
    name: bytes
    standing: Attributes | None


def find_object(workspace: Workspace, key: bytes) -> Place:
    """Return the place of the file a key stands for. Raises `Kind.NOT_FOUND`."""
    *above, name = encode_key(key)
    parent = _descend(workspace, above)
    place = _standing_file(workspace, parent, name)
    if place is None:
        raise _no_such_key(key)
    return place


def find_leftover(workspace: Workspace, place: Place) -> Place | None:
    """Return the file beside the object at a place that its key stood for before, None when there is none.

    Two writers leave one when the directory that one of them evaded goes while they write.
    """
    aside = None if is_beside_directory(place.name) else _look_beside(workspace, place.parent, place.name)
    return Place(place.parent, beside_directory(place.name), aside) if aside is not None else None


def find_directory(workspace: Workspace, key: bytes) -> Place:
    """Return the place of the directory that a key ending with a slash names. Raises `Kind.NOT_FOUND`."""
    *above, name = encode_key(key)[:-1]
    parent = _descend(workspace, above)
    found = look_up(workspace, parent, name)
    if found is None or not stat.S_ISDIR(found.st_mode):
        raise _no_such_key(key)
    return Place(parent, name, found)


def descend(workspace: Workspace, prefix: bytes) -> int | None:
    """Return the directory that holds every key with a prefix (ending with a slash, or empty), None when there is none."""
    if not prefix:
        return ROOT
    try:
        return _descend(workspace, list(encode_key(prefix)[:-1]))
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        return None


def make_place(workspace: Workspace, key: bytes) -> Place:
    """Return the place for a key, with the directories above it made. Raises `S3Fault` for what is in the way."""
    *above, name = encode_key(key)
    parent = ROOT
    for step in above:
        parent = _enter(workspace, parent, step)
    standing = look_up(workspace, parent, name)
    if standing is not None and not stat.S_ISDIR(standing.st_mode):
        return Place(parent, name, _require_file(standing, name))
    aside = _look_beside(workspace, parent, name)
    if standing is not None or aside is not None:
        return Place(parent, beside_directory(name), aside)
    return Place(parent, name, None)


def make_directory(workspace: Workspace, key: bytes) -> int:
    """Return the directory that a key ending with a slash names, made where it is missing."""
    node = ROOT
    for step in encode_key(key)[:-1]:
        node = _enter(workspace, node, step)
    return node


def prune(workspace: Workspace, node: int) -> None:
    """Remove an implied directory that has become empty, and what is implied above it; anything else stays.

    One that somebody else removes or fills meanwhile is theirs. The directory is not read first, which could be long: trying costs less.
    """
    try:
        while node != ROOT and IMPLIED in workspace.xattrs(node):
            parent, name = _parent_of(workspace, node)
            workspace.rmdir(parent, name)
            node = parent
            if workspace.list(node):
                return
    except Fault as fault:
        if fault.kind not in {Kind.NOT_EMPTY, Kind.NOT_FOUND, Kind.STALE, Kind.DENIED}:
            raise


def look_up(workspace: Workspace, parent: int, name: bytes) -> Attributes | None:
    """Return what a name stands for, None when it stands for nothing."""
    try:
        return workspace.lookup(parent, name)
    except Fault as fault:
        if fault.kind not in {Kind.NOT_FOUND, Kind.NOT_A_DIRECTORY}:
            raise
        return None


def is_directory(attributes: Attributes) -> bool:
    """Tell whether a node is a directory."""
    return stat.S_ISDIR(attributes.st_mode)


def _parent_of(workspace: Workspace, node: int) -> tuple[int, bytes]:
    *above, name = workspace.path(node).split(b"/")
    return _descend(workspace, above), name


def _descend(workspace: Workspace, names: list[bytes]) -> int:
    node = ROOT
    for name in names:
        found = workspace.lookup(node, name)
        if not stat.S_ISDIR(found.st_mode):
            raise _no_such_key(name)
        node = found.node
    return node


def _standing_file(workspace: Workspace, parent: int, name: bytes) -> Place | None:
    found = look_up(workspace, parent, name)
    if found is not None and stat.S_ISREG(found.st_mode):
        return Place(parent, name, found)
    aside = _look_beside(workspace, parent, name)
    return Place(parent, beside_directory(name), aside) if aside is not None else None


def _look_beside(workspace: Workspace, parent: int, name: bytes) -> Attributes | None:
    try:
        found = look_up(workspace, parent, beside_directory(name))
    except S3Fault:
        return None
    return found if found is not None and stat.S_ISREG(found.st_mode) else None


def _enter(workspace: Workspace, parent: int, name: bytes) -> int:
    """Return the directory `name`, made as an implied one when nothing is there; a file there moves beside it first (rule 3)."""
    found = look_up(workspace, parent, name)
    if found is not None and stat.S_ISDIR(found.st_mode):
        return found.node
    if found is not None:
        _require_file(found, name)
        _move_beside(workspace, parent, name)
    return _make_implied(workspace, parent, name)


def _move_beside(workspace: Workspace, parent: int, name: bytes) -> None:
    try:
        workspace.rename(parent, name, parent, beside_directory(name))
    except Fault as fault:
        if fault.kind in {Kind.EXISTS, Kind.IS_A_DIRECTORY}:
            raise _in_the_way(beside_directory(name), "a directory") from fault
        if fault.kind is not Kind.NOT_FOUND:
            raise


def _make_implied(workspace: Workspace, parent: int, name: bytes) -> int:
    try:
        node = workspace.mkdir(parent, name, _DIRECTORY_MODE).node
    except Fault as fault:
        if fault.kind is not Kind.EXISTS:
            raise
        return workspace.lookup(parent, name).node
    workspace.set_xattr(node, IMPLIED, b"1")
    return node


def _require_file(found: Attributes, name: bytes) -> Attributes:
    if stat.S_ISREG(found.st_mode):
        return found
    raise _in_the_way(name, "a symlink" if stat.S_ISLNK(found.st_mode) else "a special file")


def _in_the_way(name: bytes, what: str) -> S3Fault:
    title = name.decode("utf-8", "replace")
    return S3Fault("InvalidRequest", f"{title}: {what} is in the way, made by another door; remove it there, or use another key")


def _no_such_key(key: bytes) -> S3Fault:
    return S3Fault("NoSuchKey", elements={"Key": key.decode("utf-8", "replace")})
