"""Finding and making names on a branch, for tools that change it.

1. Nothing is followed: what is a symlink is told to be one, with its target.
2. The tag of a file says which content was seen. A change that names a tag happens to that content or not at all.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from typing import TypeVar

from interfaces.faults import Fault, Kind
from interfaces.mcp.paths import render_path, split_path
from interfaces.port import ROOT, Attributes, Condition, Workspace, walk
from interfaces.web import conditions

T = TypeVar("T")

DIRECTORY_MODE = 0o755
FILE_MODE = 0o644
_ATTEMPTS = 10

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}


def tag_of(attributes: Attributes) -> str:
    """Return what identifies the content of a file, the same as every door's entity tag; empty for what has none."""
    return conditions.tag_of(attributes).strip('"') if stat.S_ISREG(attributes.st_mode) else ""


def type_of(attributes: Attributes) -> str:
    """Return what a node is, in a word."""
    return TYPES.get(stat.S_IFMT(attributes.st_mode), "other")


def find_file(workspace: Workspace, path: bytes) -> Attributes:
    """Return the attributes of a regular file. Raises `Kind.NOT_FOUND`, `Kind.IS_A_DIRECTORY`, `Kind.INVALID`."""
    attributes = walk(workspace, path)
    require_file(workspace, path, attributes)
    return attributes


def require_file(workspace: Workspace, path: bytes, attributes: Attributes) -> None:
    """Return when there is a regular file at a path. Raises `Kind.IS_A_DIRECTORY`, `Kind.INVALID`."""
    if stat.S_ISREG(attributes.st_mode):
        return
    if stat.S_ISDIR(attributes.st_mode):
        raise Fault(Kind.IS_A_DIRECTORY, f"{render_path(path)} is a directory", hint="use list to see what is in it")
    if stat.S_ISLNK(attributes.st_mode):
        target = render_path(workspace.readlink(attributes.node))
        raise Fault(Kind.INVALID, f"{render_path(path)} is a symlink to {target}", hint="use the path it points to; links are not followed")
    raise Fault(Kind.INVALID, f"{render_path(path)} is a {type_of(attributes)}, not a file", hint="it has no content to work with")


def find_place(workspace: Workspace, path: bytes, *, create: bool) -> tuple[int, bytes]:
    """Return the directory and the name a path stands for, making directories on the way when `create` says so."""
    directory, name = split_path(path)
    node = ROOT
    for step in directory.split(b"/") if directory else ():
        node = _step(workspace, node, step, create=create)
    return node, name


def find_existing(workspace: Workspace, parent: int, name: bytes) -> Attributes | None:
    """Return what a name stands for, None when there is nothing."""
    try:
        return workspace.lookup(parent, name)
    except Fault as fault:
        if fault.kind is not Kind.NOT_FOUND:
            raise
        return None


def require_tag(path: bytes, tag: str) -> Condition:
    """Return a condition that the file still has the content of `tag`."""

    def check(attributes: Attributes | None) -> None:
        if attributes is None or tag_of(attributes) != tag:
            raise Fault(
                Kind.PRECONDITION, f"{render_path(path)} has changed since it was read", hint="read it again, then repeat the change"
            )

    return check


def look_again(act: Callable[[], T], kinds: frozenset[Kind] = frozenset({Kind.STALE})) -> T:
    """Return what `act` returns, repeating it a few times while another writer is faster, which one of `kinds` tells. Raises as `act`."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return act()
        except Fault as fault:
            if fault.kind not in kinds:
                raise
    return act()


def require_absent(path: bytes) -> Condition:
    """Return a condition that there is nothing of the name."""

    def check(attributes: Attributes | None) -> None:
        if attributes is not None:
            raise Fault(Kind.EXISTS, f"{render_path(path)} exists", hint='choose another name, or say "replace": true')

    return check


def remove_tree(workspace: Workspace, parent: int, name: bytes, most: int) -> int:
    """Remove a name with everything below it and return how many names went.

    Raises `Kind.TOO_LARGE` before anything is removed when there are more than `most`, and the fault of the first one that could not be.
    """
    attributes = workspace.lookup(parent, name)
    doomed = [(parent, name, attributes)]
    for _, _, found in doomed:
        if stat.S_ISDIR(found.st_mode):
            doomed += [(found.node, entry, below) for entry, below in workspace.list(found.node)]
        if len(doomed) > most:
            raise Fault(Kind.TOO_LARGE, f"there are more than {most} names below", hint="delete its directories one by one")
    for above, entry, found in reversed(doomed):
        remove_name(workspace, above, entry, found)
    return len(doomed)


def remove_name(workspace: Workspace, parent: int, name: bytes, attributes: Attributes) -> None:
    """Remove one name: a file, or an empty directory."""
    remove: Callable[[int, bytes], None] = workspace.rmdir if stat.S_ISDIR(attributes.st_mode) else workspace.unlink
    remove(parent, name)


def _step(workspace: Workspace, parent: int, name: bytes, *, create: bool) -> int:
    found = find_existing(workspace, parent, name) if create else workspace.lookup(parent, name)
    return workspace.mkdir(parent, name, DIRECTORY_MODE).node if found is None else found.node
