"""Nodes in memory, and the tree they form.

1. A directory maps names to links; a link is a node and the path in the head's tree it came from, which a rename carries along.
2. A node leaves the table with its last name and its last handle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from store.engines.reference.contents import Contents, blob_identity
from store.errors import IsADirectory, NotADirectory, NotFound, NotPermitted, Stale
from store.model import ROOT, Attributes, EntryKind, NodeId
from store.names import versionable
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry, join_path


@dataclass(slots=True)
class Node:
    """A file, directory, symlink, pipe or socket; `data` is the content of a file and the target of a symlink."""

    id: NodeId
    kind: EntryKind
    mode: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int
    data: bytearray = field(default_factory=bytearray)
    links: dict[bytes, Link] = field(default_factory=dict)
    xattrs: dict[bytes, bytes] = field(default_factory=dict)
    places: dict[tuple[NodeId, bytes], None] = field(default_factory=dict)
    uid: int | None = None
    gid: int | None = None
    handles: int = 0

    def attributes(self) -> Attributes:
        """Return what `stat` tells."""
        links = 1 if self.kind is EntryKind.DIRECTORY else len(self.places)
        content = identify(self.data) if self.kind is EntryKind.FILE else b""
        times = (self.mtime_ns, self.ctime_ns, self.atime_ns)
        return Attributes(self.id, self.kind, self.mode, len(self.data), links, *times, self.uid, self.gid, content)


def identify(data: bytes | bytearray) -> bytes:
    """Return what identifies a content: what a commit of it would be called."""
    return blob_identity(data).hex().encode()


class Link(NamedTuple):
    """What a name holds: a node, and its path in the head's tree when it comes from there."""

    node: Node
    origin: bytes | None


_KIND_OF_MODE = {DIRECTORY: EntryKind.DIRECTORY, SYMLINK: EntryKind.SYMLINK}
_MODE = {DIRECTORY: 0o755, SYMLINK: 0o777, EXECUTABLE: 0o755}


class Nodes:
    """A table of nodes that form one tree, and everything that only reads it."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.table: dict[NodeId, Node] = {}
        self._last = 0
        self.root = self.make(EntryKind.DIRECTORY, 0o755, 0)

    def make(self, kind: EntryKind, mode: int, now: int) -> Node:
        """Return a fresh node without a place."""
        self._last += 1
        node = self.table[NodeId(self._last)] = Node(NodeId(self._last), kind, mode & 0o7777, now, now, now)
        return node

    def grow(self, entry: TreeEntry, now: int, origin: bytes | None) -> Node:
        """Return fresh nodes for an entry and everything below; `origin` is its path when it is in the head's tree."""
        node = self.make(_KIND_OF_MODE.get(entry.mode, EntryKind.FILE), _MODE.get(entry.mode, 0o644), now)
        if entry.mode == DIRECTORY:
            self.fill(node, entry.content, now, origin)
        else:
            node.data[:] = self.contents.read_blob(entry.content)
        return node

    def fill(self, directory: Node, content: bytes, now: int, origin: bytes | None) -> None:
        """Put fresh nodes for a listing into an empty directory."""
        for name, entry in self.contents.read_tree(content).items():
            path = None if origin is None else join_path(origin, name)
            self.attach(directory, name, self.grow(entry, now, path), path)

    def attach(self, directory: Node, name: bytes, node: Node, origin: bytes | None) -> None:
        """Give a node a name."""
        directory.links[name] = Link(node, origin)
        node.places[directory.id, name] = None

    def detach(self, directory: Node, name: bytes) -> Link:
        """Take a name away and return what it held."""
        link = directory.links.pop(name)
        del link.node.places[directory.id, name]
        return link

    def forget(self, node: Node) -> None:
        """Drop a node, and what is below it, once nothing leads to it."""
        if node.places or node.handles:
            return
        for name in list(node.links):
            self.forget(self.detach(node, name).node)
        self.table.pop(node.id, None)

    def node(self, node: NodeId) -> Node:
        """Return a node. Raises `Stale`."""
        found = self.table.get(node)
        if found is None:
            raise Stale(node, "the node is gone")
        return found

    def directory(self, node: NodeId) -> Node:
        """Return a directory. Raises `Stale`, `NotADirectory`."""
        found = self.node(node)
        if found.kind is not EntryKind.DIRECTORY:
            raise NotADirectory(node)
        return found

    def file(self, node: NodeId) -> Node:
        """Return a regular file. Raises `Stale`, `IsADirectory`, `NotPermitted`."""
        found = self.node(node)
        if found.kind is EntryKind.DIRECTORY:
            raise IsADirectory(node)
        if found.kind is not EntryKind.FILE:
            raise NotPermitted(node, "not a regular file")
        return found

    def child(self, parent: NodeId, name: bytes) -> Link:
        """Return what a name holds. Raises `Stale`, `NotADirectory`, `NotFound`."""
        link = self.directory(parent).links.get(name)
        if link is None:
            raise NotFound(name)
        return link

    def find(self, directory: Node, name: bytes) -> Node | None:
        """Return what a name stands for, or None. Raises `IsADirectory`."""
        link = directory.links.get(name)
        if link is not None and link.node.kind is EntryKind.DIRECTORY:
            raise IsADirectory(name)
        return None if link is None else link.node

    def list(self, node: NodeId) -> Sequence[tuple[bytes, Attributes]]:
        """Return a directory's names and attributes in order."""
        return [(name, link.node.attributes()) for name, link in sorted(self.directory(node).links.items())]

    def path(self, node: NodeId) -> bytes:
        """Return a path of a node. Raises `Stale`."""
        found = self.node(node)
        names: list[bytes] = []
        while found.id != ROOT:
            if not found.places:
                raise Stale(node, "the node has no name")
            parent, name = next(iter(found.places))
            names.append(name)
            found = self.table[parent]
        return b"/".join(reversed(names))

    def freeze(self, node: Node) -> TreeEntry:
        """Write a node and everything below that commits hold, and return its entry."""
        if node.kind is EntryKind.DIRECTORY:
            listing = {name: self.freeze(link.node) for name, link in node.links.items() if committable(name, link.node)}
            return TreeEntry(DIRECTORY, self.contents.write_tree(listing))
        mode = SYMLINK if node.kind is EntryKind.SYMLINK else EXECUTABLE if node.mode & 0o100 else FILE
        return TreeEntry(mode, self.contents.write_blob(bytes(node.data)))

    def walk(self, node: Node, prefix: bytes = b"") -> Iterator[tuple[bytes, Link]]:
        """Yield every path that commits hold with its link, directories before what they hold."""
        for name, link in sorted(node.links.items()):
            if committable(name, link.node):
                path = join_path(prefix, name)
                yield path, link
                yield from self.walk(link.node, path)

    def left_out(self, node: Node, prefix: bytes = b"") -> Iterator[bytes]:
        """Yield the topmost paths that commits pass over."""
        for name, link in sorted(node.links.items()):
            path = join_path(prefix, name)
            if not committable(name, link.node):
                yield path
            else:
                yield from self.left_out(link.node, path)


def committable(name: bytes, node: Node) -> bool:
    """Tell whether a commit can hold a node under a name."""
    return node.kind.versioned and versionable(name, symlink=node.kind is EntryKind.SYMLINK)
