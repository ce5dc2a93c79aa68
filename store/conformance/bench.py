"""What every suite works with: an engine to try, short ways to put and read files, and what can be seen of a store.

1. What is seen never holds ids, nodes or times of files: those are an engine's own.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from store.contract import READING, Engine, Tree, Working
from store.errors import StoreError
from store.model import (
    ROOT,
    Access,
    Attributes,
    Capability,
    Change,
    CommitId,
    Committed,
    EntryKind,
    NodeId,
    Note,
    Provenance,
    Side,
)
from store.service import Role, open_store
from store.trees import join_path, split_path

WRITING = Access(read=True, write=True)
REPLACING = Access(read=True, write=True, truncate=True)
APPENDING = Access(read=True, write=True, append=True)


class BrokenPromise(AssertionError):
    """An engine did not do what the contract says."""


def same(found: object, expected: object, what: str) -> None:
    """Raise `BrokenPromise` unless both are equal."""
    if found != expected:
        raise BrokenPromise(f"{what}: found {found!r}, expected {expected!r}")


@contextlib.contextmanager
def refused(*errors: type[StoreError]) -> Iterator[None]:
    """Raise `BrokenPromise` unless the block raises one of `errors`."""
    try:
        yield
    except errors:
        return
    raise BrokenPromise(f"nothing was refused, expected {' or '.join(error.__name__ for error in errors)}")


@dataclass(frozen=True, slots=True)
class Subject:
    """An engine, by name, and a folder of its own for one store."""

    engine: str
    folder: Path

    def open(self, role: Role = "owner") -> Engine:
        """Open the store; a durable one holds what it held."""
        return open_store(self.folder, self.engine, role=role)


class Seen(NamedTuple):
    """What can be seen at one path."""

    kind: EntryKind
    executable: bool
    content: bytes
    xattrs: tuple[tuple[bytes, bytes], ...] = ()
    links: int = 1


@dataclass(slots=True)
class Bench:
    """A store that one check works on, with times that only grow."""

    subject: Subject
    engine: Engine
    _seconds: Iterator[int] = field(default_factory=lambda: itertools.count(1_700_000_000))

    def reopen(self) -> None:
        """Close the store and open it again."""
        self.engine.close()
        self.engine = self.subject.open()

    def declares(self, capability: Capability) -> bool:
        """Tell whether the engine declares a capability."""
        return capability in self.engine.capabilities

    def now(self) -> int:
        """Return the next second."""
        return next(self._seconds)

    def note(self, message: str = "work") -> Note:
        """Return a note with the next second."""
        return make_note(message, self.now())

    def start(self, name: str = "main", at: CommitId | None = None) -> Working:
        """Make a branch and return its working layer."""
        self.engine.create_branch(name, at, self.now())
        return self.engine.working(name)

    def commit(self, name: str = "main", message: str = "work") -> Committed:
        """Commit a branch that has changes."""
        committed = self.engine.commit(name, self.note(message))
        if committed is None:
            raise BrokenPromise(f"{name}: the commit found no change")
        return committed

    def grow(self, files: dict[bytes, bytes], name: str = "main") -> tuple[Working, CommitId]:
        """Make a branch with one commit that holds these files."""
        working = self.start(name)
        for path, content in files.items():
            put_file(working, path, content)
        return working, self.commit(name).id


Check = Callable[[Bench], None]
"""Tries one promise."""

UNKNOWN = CommitId("0" * 40)
"""The id of no commit."""


def make_note(message: str, when: int) -> Note:
    """Return a note of the suite's own agent."""
    return Note(message, Provenance("agent:conformance", "human:owner", "r1", "l1"), when)


def find(tree: Tree, path: bytes) -> Attributes:
    """Return what is at a path, name by name."""
    attributes = tree.attributes(ROOT)
    for name in path.split(b"/") if path else ():
        attributes = tree.lookup(attributes.node, name)
    return attributes


def read_node(tree: Tree, node: NodeId) -> bytes:
    """Return the content of a file."""
    handle = tree.open(node, READING)
    try:
        return b"".join(iter(_reader(handle.read), b""))
    finally:
        handle.close()


def _reader(read: Callable[[int, int], bytes]) -> Callable[[], bytes]:
    offset = 0

    def read_next() -> bytes:
        nonlocal offset
        piece = read(offset, 1 << 16)
        offset += len(piece)
        return piece

    return read_next


def read_file(tree: Tree, path: bytes) -> bytes:
    """Return the content of the file at a path."""
    return read_node(tree, find(tree, path).node)


def make_directory(working: Working, path: bytes) -> NodeId:
    """Return the directory at a path, made where it is missing."""
    node = ROOT
    for name in path.split(b"/") if path else ():
        names = dict(working.list(node))
        node = names[name].node if name in names else working.mkdir(node, name, 0o755).node
    return node


def put_file(working: Working, path: bytes, content: bytes, mode: int = 0o644) -> NodeId:
    """Write a whole file, made where it is missing, and return its node."""
    directory, name = split_path(path)
    parent = make_directory(working, directory)
    names = dict(working.list(parent))
    node = names[name].node if name in names else working.create(parent, name, mode).node
    write_node(working, node, content)
    return node


def write_node(working: Working, node: NodeId, content: bytes, offset: int = 0, access: Access = REPLACING) -> None:
    """Write to a file through a handle of its own."""
    handle = working.open(node, access)
    try:
        same(handle.write(offset, content), len(content), "bytes written")
    finally:
        handle.close()


def move(working: Working, old: bytes, new: bytes, *, replace: bool = True, exchange: bool = False) -> None:
    """Rename by paths."""
    (source, name), (target, target_name) = split_path(old), split_path(new)
    working.rename(find(working, source).node, name, find(working, target).node, target_name, replace=replace, exchange=exchange)


def remove(working: Working, path: bytes) -> None:
    """Remove a path and everything below it."""
    directory, name = split_path(path)
    parent, found = find(working, directory).node, find(working, path)
    if found.kind is not EntryKind.DIRECTORY:
        working.unlink(parent, name)
        return
    for below, _ in working.list(found.node):
        remove(working, join_path(path, below))
    working.rmdir(parent, name)


def see_tree(tree: Tree) -> dict[bytes, Seen]:
    """Return everything that can be seen of a tree, by path."""
    seen: dict[bytes, Seen] = {}
    pending = [(b"", ROOT)]
    while pending:
        prefix, node = pending.pop()
        for name, attributes in tree.list(node):
            path = join_path(prefix, name)
            seen[path] = _see(tree, attributes)
            if attributes.kind is EntryKind.DIRECTORY:
                pending.append((path, attributes.node))
    return seen


def _see(tree: Tree, attributes: Attributes) -> Seen:
    xattrs = tuple(sorted(tree.xattrs(attributes.node).items()))
    if attributes.kind is EntryKind.FILE:
        content = read_node(tree, attributes.node)
        same(attributes.size, len(content), "the size of a file")
        return Seen(attributes.kind, bool(attributes.mode & 0o100), content, xattrs, attributes.links)
    content = tree.readlink(attributes.node) if attributes.kind is EntryKind.SYMLINK else b""
    return Seen(attributes.kind, False, content, xattrs)


def see_files(tree: Tree) -> dict[bytes, bytes]:
    """Return the content of every file and symlink, by path."""
    return {path: seen.content for path, seen in see_tree(tree).items() if seen.kind is not EntryKind.DIRECTORY}


def see_change(change: Change) -> tuple[object, ...]:
    """Return what can be seen of a change."""
    return (change.kind, change.path, change.origin, *(_see_side(side) for side in (change.old, change.new)))


def _see_side(side: Side | None) -> tuple[object, ...] | None:
    return None if side is None else (side.kind, side.executable, side.size)
