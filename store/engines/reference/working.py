"""What callers do to a working layer, and what they may do to a commit's tree, in memory.

1. Every call takes the engine's lock; a failed call changes nothing.
2. A name that comes or goes sets the times of its directory; a change of a node sets its ctime.
"""

from __future__ import annotations

import secrets
import sys
from _thread import RLock
from collections.abc import Callable, Sequence
from typing import NamedTuple

from store.contract import READING, Attach, Condition, Content, Staged
from store.engines.reference.handles import MAX_FILE, MemoryHandle
from store.engines.reference.layer import Layer
from store.engines.reference.nodes import Node, Nodes, identify
from store.engines.reference.rules import attach_xattrs, check_name, check_replaceable, check_xattr
from store.errors import (
    Exists,
    IntoItself,
    NotADirectory,
    NotEmpty,
    NotFound,
    NotPermitted,
    ReadOnly,
    TooLarge,
)
from store.model import Access, AttributeChange, Attributes, Change, EntryKind, NodeId, Space, Touched, Version

MAX_TARGET = 4_095
_PIECE = 1 << 20


class FrozenTree:
    """The tree of a commit."""

    def __init__(self, nodes: Nodes, lock: RLock) -> None:
        self._nodes = nodes
        self._lock = lock

    def lookup(self, parent: NodeId, name: bytes) -> Attributes:
        """Return what a name stands for."""
        with self._lock:
            return self._nodes.child(parent, name).node.attributes()

    def attributes(self, node: NodeId) -> Attributes:
        """Return the attributes of a node."""
        with self._lock:
            return self._nodes.node(node).attributes()

    def list(self, node: NodeId) -> Sequence[tuple[bytes, Attributes]]:
        """Return a directory in order."""
        with self._lock:
            return self._nodes.list(node)

    def readlink(self, node: NodeId) -> bytes:
        """Return the target of a symlink."""
        with self._lock:
            found = self._nodes.node(node)
            if found.kind is not EntryKind.SYMLINK:
                raise NotPermitted(node, "not a symlink")
            return bytes(found.data)

    def open(self, node: NodeId, access: Access = READING) -> MemoryHandle:
        """Open a file for reading."""
        if access.write or access.append or access.truncate:
            raise ReadOnly(node, "a commit never changes")
        with self._lock:
            return MemoryHandle(self._nodes.file(node), access, self._lock, _ignore, _ignore)

    def path(self, node: NodeId) -> bytes:
        """Return a path of a node."""
        with self._lock:
            return self._nodes.path(node)

    def xattrs(self, node: NodeId) -> dict[bytes, bytes]:
        """Return the extended attributes of a node."""
        with self._lock:
            return dict(self._nodes.node(node).xattrs)


class _Made(NamedTuple):
    """A file about to get a name; without `xattrs` it takes those of the file that is there."""

    mode: int
    data: bytes
    xattrs: dict[bytes, bytes] | None = None


def _ignore(node: Node) -> None:
    """Do nothing: a commit's nodes neither change nor go."""


class MemoryWorking(FrozenTree):
    """The working layer of a branch as callers see it."""

    def __init__(self, name: str, layer: Layer, lock: RLock, clock: Callable[[], int], changes: Callable[[], Sequence[Change]]) -> None:
        super().__init__(layer.nodes, lock)
        self._name = name
        self._layer = layer
        self._clock = clock
        self._changes = changes

    def open(self, node: NodeId, access: Access = READING) -> MemoryHandle:
        """Open a file."""
        with self._lock:
            self._check_alive()
            return MemoryHandle(self._nodes.file(node), access, self._lock, self._written, self._nodes.forget)

    def create(self, parent: NodeId, name: bytes, mode: int, kind: EntryKind = EntryKind.FILE) -> Attributes:
        """Make an empty file, pipe or socket."""
        if kind not in (EntryKind.FILE, EntryKind.FIFO, EntryKind.SOCKET):
            raise NotPermitted(name, f"a {kind.value} is not made this way")
        return self._add(parent, name, kind, mode, b"")

    def mkdir(self, parent: NodeId, name: bytes, mode: int) -> Attributes:
        """Make an empty directory."""
        return self._add(parent, name, EntryKind.DIRECTORY, mode, b"")

    def place(
        self, parent: NodeId, name: bytes, mode: int, content: Content, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Make a name stand for a whole file at once."""
        data = b"".join(iter(lambda: content.read(_PIECE), b""))
        with self._lock:
            return self._put(parent, name, _Made(mode, data), condition, attach)

    def copy(
        self, node: NodeId, parent: NodeId, name: bytes, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Make a name stand for a copy of a file at once."""
        with self._lock:
            source = self._nodes.file(node)
            return self._put(parent, name, _Made(source.mode, bytes(source.data), source.xattrs), condition, attach)

    def stage(self, content: Content) -> Staged:
        """Keep bytes under no name."""
        data = b"".join(iter(lambda: content.read(_PIECE), b""))
        with self._lock:
            self._check_alive()
            id = secrets.token_hex(12)
            self._layer.staged[id] = data
            return Staged(id, len(data))

    def staged(self, id: str) -> MemoryHandle:
        """Open staged bytes for reading."""
        with self._lock:
            data = self._layer.staged.get(id)
            if data is None:
                raise NotFound(id, "nothing is staged under this id")
            node = Node(NodeId(0), EntryKind.FILE, 0, 0, 0, 0, bytearray(data))
            return MemoryHandle(node, READING, self._lock, _ignore, _ignore)

    def unstage(self, id: str) -> None:
        """Let staged bytes go."""
        with self._lock:
            self._layer.staged.pop(id, None)

    def _put(self, parent: NodeId, name: bytes, made: _Made, condition: Condition | None, attach: Attach | None) -> Attributes:
        """Put a file under a name when the condition agrees."""
        self._check_alive()
        directory = self._nodes.directory(parent)
        check_name(name)
        former = self._nodes.find(directory, name)
        attached = attach(identify(made.data)) if attach is not None else {}
        for key, value in attached.items():
            check_xattr(key, value)
        if condition is not None:
            condition(None if former is None else former.attributes())
        node = self._nodes.make(EntryKind.FILE, made.mode, self._clock())
        node.data[:] = made.data
        if former is not None and former.kind is EntryKind.FILE:
            node.mode, node.uid, node.gid, node.xattrs = former.mode, former.uid, former.gid, dict(former.xattrs)
        if former is not None:
            self._nodes.forget(self._nodes.detach(directory, name).node)
        attach_xattrs(node, node.xattrs if made.xattrs is None else made.xattrs, attached)
        self._nodes.attach(directory, name, node, None)
        self._stamp(directory)
        self._layer.touch(Touched(parent, name, node.id))
        return node.attributes()

    def symlink(self, parent: NodeId, name: bytes, target: bytes) -> Attributes:
        """Make a symlink."""
        if len(target) > MAX_TARGET:
            raise TooLarge(name, f"the target of a symlink has at most {MAX_TARGET} bytes")
        return self._add(parent, name, EntryKind.SYMLINK, 0o777, target)

    def link(self, node: NodeId, parent: NodeId, name: bytes) -> Attributes:
        """Give a file another name."""
        with self._lock:
            directory = self._free(parent, name)
            found = self._nodes.node(node)
            if found.kind is EntryKind.DIRECTORY:
                raise NotPermitted(node, "a directory has one name")
            if not found.places:
                raise NotFound(node, "the file has no name any more")
            self._nodes.attach(directory, name, found, None)
            found.ctime_ns = self._stamp(directory)
            self._layer.touch(Touched(parent, name, node))
            return found.attributes()

    def unlink(self, parent: NodeId, name: bytes, *, condition: Condition | None = None) -> None:
        """Remove a name of anything but a directory."""
        with self._lock:
            self._check_alive()
            found = self._nodes.find(self._nodes.directory(parent), name)
            if condition is not None:
                condition(None if found is None else found.attributes())
            if found is None:
                raise NotFound(name)
            self._drop(parent, name)

    def rmdir(self, parent: NodeId, name: bytes) -> None:
        """Remove an empty directory."""
        with self._lock:
            self._check_alive()
            node = self._nodes.child(parent, name).node
            if node.kind is not EntryKind.DIRECTORY:
                raise NotADirectory(name)
            if node.links:
                raise NotEmpty(name)
            self._drop(parent, name)

    def rename(
        self, parent: NodeId, name: bytes, target: NodeId, target_name: bytes, *, replace: bool = True, exchange: bool = False
    ) -> None:
        """Move, replace or swap names."""
        with self._lock:
            self._check_alive()
            here, there = self._nodes.directory(parent), self._nodes.directory(target)
            check_name(target_name)
            moving = self._nodes.child(parent, name).node
            link = there.links.get(target_name)
            standing = None if link is None else link.node
            if exchange and standing is None:
                raise NotFound(target_name)
            if self._layer.is_above(moving, there) or (exchange and standing is not None and self._layer.is_above(standing, here)):
                raise IntoItself(target_name)
            if moving is standing:
                return
            if standing is not None and not exchange:
                check_replaceable(moving, standing, target_name, replace=replace)
            self._move(here, name, there, target_name, exchange=exchange)

    def _move(self, here: Node, name: bytes, there: Node, target_name: bytes, *, exchange: bool) -> None:
        moving = self._nodes.detach(here, name)
        standing = self._nodes.detach(there, target_name) if target_name in there.links else None
        self._nodes.attach(there, target_name, *moving)
        moving.node.ctime_ns = self._stamp(here, there)
        left = moving.node
        if standing is not None:
            standing.node.ctime_ns = moving.node.ctime_ns
            if exchange:
                self._nodes.attach(here, name, *standing)
                left = standing.node
            self._nodes.forget(standing.node)
        self._layer.touch(Touched(here.id, name, left.id), Touched(there.id, target_name, moving.node.id))

    def set_attributes(self, node: NodeId, change: AttributeChange) -> Attributes:
        """Change attributes."""
        with self._lock:
            self._check_alive()
            found = self._nodes.node(node) if change.size is None else self._nodes.file(node)
            now = self._clock()
            if change.size is not None and change.size > MAX_FILE:
                raise TooLarge(node, f"a file has at most {MAX_FILE} bytes")
            if change.size is not None:
                kept = bytes(found.data[: change.size])
                found.data[:] = kept + bytes(change.size - len(kept))
                found.mtime_ns = now
            for name in ("uid", "gid", "mtime_ns", "atime_ns"):
                value = getattr(change, name)
                if value is not None:
                    setattr(found, name, value)
            if change.mode is not None:
                found.mode = change.mode & 0o7777
            found.ctime_ns = now
            self._layer.touch_node(found)
            return found.attributes()

    def set_xattr(self, node: NodeId, name: bytes, value: bytes | None) -> None:
        """Set or remove an extended attribute."""
        with self._lock:
            self._check_alive()
            found = self._nodes.node(node)
            check_xattr(name, value)
            if found.kind not in (EntryKind.FILE, EntryKind.DIRECTORY):
                raise NotPermitted(name, "only files and directories have attributes")
            if value is None and name not in found.xattrs:
                raise NotFound(name)
            if value is None:
                del found.xattrs[name]
            else:
                found.xattrs[name] = value
            found.ctime_ns = self._clock()
            self._layer.touch_node(found)

    def sync(self) -> None:
        """Return at once: nothing is more stable than memory here."""
        self._check_alive()

    def version(self) -> Version:
        """Return the number of the last change."""
        return self._layer.version

    def touched(self, since: Version) -> Sequence[Touched] | None:
        """Return what changed after a version."""
        with self._lock:
            return self._layer.touched(since)

    def space(self) -> Space:
        """Return the address space: the engine sets no limit of its own."""
        return Space(sys.maxsize, sys.maxsize, len(self._nodes.table))

    def changes(self) -> Sequence[Change]:
        """Return the uncommitted changes."""
        with self._lock:
            self._check_alive()
            return self._changes()

    def left_out(self) -> Sequence[bytes]:
        """Return the paths that commits pass over."""
        with self._lock:
            return list(self._nodes.left_out(self._nodes.root))

    def close(self) -> None:
        """Do nothing: the caller holds nothing."""

    def _check_alive(self) -> None:
        if self._layer.gone:
            raise NotFound(self._name, "the branch is gone")

    def _free(self, parent: NodeId, name: bytes) -> Node:
        """Return the directory that a fresh name goes into."""
        self._check_alive()
        directory = self._nodes.directory(parent)
        check_name(name)
        if name in directory.links:
            raise Exists(name)
        if parent != self._nodes.root.id and not directory.places:
            raise NotFound(name, "the directory was removed")
        return directory

    def _add(self, parent: NodeId, name: bytes, kind: EntryKind, mode: int, data: bytes) -> Attributes:
        with self._lock:
            directory = self._free(parent, name)
            node = self._nodes.make(kind, mode, self._clock())
            node.data[:] = data
            self._nodes.attach(directory, name, node, None)
            self._stamp(directory)
            self._layer.touch(Touched(parent, name, node.id))
            return node.attributes()

    def _drop(self, parent: NodeId, name: bytes) -> None:
        directory = self._nodes.directory(parent)
        node = self._nodes.detach(directory, name).node
        node.ctime_ns = self._stamp(directory)
        self._nodes.forget(node)
        self._layer.touch(Touched(parent, name, node.id))

    def _stamp(self, *directories: Node) -> int:
        now = self._clock()
        for directory in directories:
            directory.mtime_ns = directory.ctime_ns = now
        return now

    def _written(self, node: Node) -> None:
        node.mtime_ns = node.ctime_ns = self._clock()
        self._layer.touch_node(node)
