"""What callers do to a working layer, and what they may do to a commit's tree, in memory.

1. Every call takes the engine's lock; a failed call changes nothing.
2. A name that comes or goes sets the times of its directory; a change of a node sets its ctime.
"""

from __future__ import annotations

import sys
from _thread import RLock
from collections.abc import Callable, Sequence

from store.contract import READING, Content
from store.engines.reference.handles import MAX_FILE, MemoryHandle
from store.engines.reference.layer import Layer
from store.engines.reference.nodes import Node, Nodes
from store.errors import (
    Exists,
    IntoItself,
    InvalidName,
    IsADirectory,
    NotADirectory,
    NotEmpty,
    NotFound,
    NotPermitted,
    ReadOnly,
    TooLarge,
)
from store.model import Access, AttributeChange, Attributes, Change, EntryKind, NodeId, Space, Touched, Version
from store.names import explain_name

MAX_TARGET = 4_095
MAX_XATTR = 65_536
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

    def place(self, parent: NodeId, name: bytes, mode: int, content: Content) -> Attributes:
        """Make a name stand for a whole file at once."""
        data = b"".join(iter(lambda: content.read(_PIECE), b""))
        with self._lock:
            self._check_alive()
            directory = self._nodes.directory(parent)
            _check_name(name)
            if name in directory.links and directory.links[name].node.kind is EntryKind.DIRECTORY:
                raise IsADirectory(name)
            node = self._nodes.make(EntryKind.FILE, mode, self._clock())
            node.data[:] = data
            if name in directory.links:
                self._replace(directory, name, node)
            self._nodes.attach(directory, name, node, None)
            self._stamp(directory)
            self._layer.touch(Touched(parent, name, node.id))
            return node.attributes()

    def _replace(self, directory: Node, name: bytes, node: Node) -> None:
        """Take away what stands at a name; a file passes on its mode, owner and extended attributes."""
        former = self._nodes.detach(directory, name).node
        if former.kind is EntryKind.FILE:
            node.mode, node.uid, node.gid, node.xattrs = former.mode, former.uid, former.gid, dict(former.xattrs)
        self._nodes.forget(former)

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

    def unlink(self, parent: NodeId, name: bytes) -> None:
        """Remove a name of anything but a directory."""
        with self._lock:
            self._check_alive()
            node = self._nodes.child(parent, name).node
            if node.kind is EntryKind.DIRECTORY:
                raise IsADirectory(name)
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
            _check_name(target_name)
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
                _check_replaceable(moving, standing, target_name, replace=replace)
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
            if not name.startswith(b"user.") or found.kind not in (EntryKind.FILE, EntryKind.DIRECTORY):
                raise NotPermitted(name, "only user.* attributes of files and directories can be set")
            if value is None and name not in found.xattrs:
                raise NotFound(name)
            if value is not None and len(value) > MAX_XATTR:
                raise TooLarge(name, f"an extended attribute has at most {MAX_XATTR} bytes")
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
        _check_name(name)
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


def _check_name(name: bytes) -> None:
    why = explain_name(name)
    if why is not None:
        raise InvalidName(name, why)


def _check_replaceable(moving: Node, standing: Node, name: bytes, *, replace: bool) -> None:
    """Refuse a rename that cannot replace what stands at the new name."""
    if not replace:
        raise Exists(name)
    if moving.kind is EntryKind.DIRECTORY and standing.kind is not EntryKind.DIRECTORY:
        raise NotADirectory(name)
    if moving.kind is not EntryKind.DIRECTORY and standing.kind is EntryKind.DIRECTORY:
        raise IsADirectory(name)
    if standing.links:
        raise NotEmpty(name)
