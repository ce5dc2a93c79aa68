"""The working layer of one branch in memory: every node of its tree, what changed, and what the head holds.

1. The first use grows the whole tree; nodes then live as long as the branch.
2. `commit`, `merge` and `move` replace what the head holds; `put` makes paths equal to an entry and keeps nodes where the kind agrees.
"""

from __future__ import annotations

from store.diff import Difference, diff_trees
from store.engines.reference.contents import Contents
from store.engines.reference.nodes import Link, Node, Nodes, committable
from store.model import ROOT, EntryKind, NodeId, Touched, Version
from store.names import find_twins
from store.renames import simplify_renames
from store.trees import DIRECTORY, EXECUTABLE, SYMLINK, TreeEntry, join_path, split_path

_KEPT_CHANGES = 10_000


class Layer:
    """The nodes of a branch over the content of its head's root directory."""

    def __init__(self, contents: Contents, head: bytes, now: int) -> None:
        self.contents = contents
        self.nodes = Nodes(contents)
        self.nodes.root.mtime_ns = self.nodes.root.ctime_ns = self.nodes.root.atime_ns = now
        self.nodes.fill(self.nodes.root, head, now, b"")
        self.head = head
        self.version = Version(1)
        self.gone = False
        self.staged: dict[str, bytes] = {}
        self._changes: list[tuple[Version, Touched]] = []

    def touch(self, *touched: Touched) -> None:
        """Note what one call changed."""
        self.version = Version(self.version + 1)
        self._changes = [*self._changes, *((self.version, each) for each in touched)][-_KEPT_CHANGES:]

    def touch_node(self, node: Node) -> None:
        """Note that content or attributes of a node changed."""
        self.touch(Touched(None, None, node.id))

    def touched(self, since: Version) -> list[Touched] | None:
        """Return what changed after a version, or None when that is too long ago."""
        kept_all = len(self._changes) < _KEPT_CHANGES or self._changes[0][0] <= since
        return [each for version, each in self._changes if version > since] if kept_all else None

    def freeze(self) -> bytes:
        """Return the content of the root as a commit would hold it."""
        return self.nodes.freeze(self.nodes.root).content

    def renames(self) -> dict[bytes, bytes]:
        """Return the renames from the head's tree to this one."""
        return simplify_renames({path: link.origin for path, link in self.nodes.walk(self.nodes.root) if link.origin is not None})

    def differences(self) -> list[Difference]:
        """Return what differs from the head's tree."""
        return diff_trees(self.contents.read_tree, self.head, self.freeze(), self.renames())

    def settle(self) -> None:
        """Make this tree the head's: every path comes from where it is."""
        self.head = self.freeze()
        self._settle_below(self.nodes.root, b"")

    def _settle_below(self, directory: Node, prefix: bytes) -> None:
        for name, link in directory.links.items():
            held = committable(name, link.node)
            path = join_path(prefix, name)
            directory.links[name] = Link(link.node, path if held else None)
            if held:
                self._settle_below(link.node, path)
            else:
                self._forget_origins(link.node)

    def _forget_origins(self, directory: Node) -> None:
        """Forget where the head has what is below: what a commit passed over comes from nowhere, should it return."""
        for name, link in directory.links.items():
            directory.links[name] = Link(link.node, None)
            self._forget_origins(link.node)

    def twins(self, before: bytes) -> list[tuple[bytes, ...]]:
        """Return the twins in every directory whose listing differs from that of an earlier tree."""
        return self._twins_below(before, self.freeze(), b"")

    def _twins_below(self, before: bytes | None, after: bytes, prefix: bytes) -> list[tuple[bytes, ...]]:
        if before == after:
            return []
        listing = self.contents.read_tree(after)
        earlier = {} if before is None else self.contents.read_tree(before)
        found = [tuple(join_path(prefix, name) for name in group) for group in find_twins(listing)]
        for name, entry in listing.items():
            if entry.mode == DIRECTORY:
                was = earlier.get(name)
                below = was.content if was is not None and was.mode == DIRECTORY else None
                found += self._twins_below(below, entry.content, join_path(prefix, name))
        return sorted(found)

    def put(self, path: bytes, entry: TreeEntry | None, now: int) -> None:
        """Make what commits hold at `path` equal to `entry`; None removes it. What commits pass over stays."""
        if not path:
            self._put_below(self.nodes.root, entry, now)
            return
        parent, name = split_path(path)
        directory = self._directory(parent, now, make=entry is not None)
        if directory is not None:
            self._put_name(directory, name, entry, now)

    def _directory(self, path: bytes, now: int, *, make: bool) -> Node | None:
        directory = self.nodes.root
        for name in path.split(b"/") if path else ():
            link = directory.links.get(name)
            if link is None or link.node.kind is not EntryKind.DIRECTORY:
                if not make:
                    return None
                self._put_name(directory, name, TreeEntry(DIRECTORY, self.contents.write_tree({})), now)
            directory = directory.links[name].node
        return directory

    def _put_name(self, directory: Node, name: bytes, entry: TreeEntry | None, now: int) -> None:
        link = directory.links.get(name)
        if link is not None and entry is not None and _kind(entry) is link.node.kind and self._is_own(link.node, entry):
            self._put_node(link.node, entry, now)
            return
        if link is not None and not self._remove(directory, name, link.node, now):
            return
        if entry is not None:
            node = self.nodes.grow(entry, now, None)
            self.nodes.attach(directory, name, node, None)
            self.touch(Touched(directory.id, name, node.id))

    def _is_own(self, node: Node, entry: TreeEntry) -> bool:
        """Tell whether a node can take over an entry: it has it, or no other name that would change with it."""
        return node.kind is EntryKind.DIRECTORY or len(node.places) == 1 or self.nodes.freeze(node) == entry

    def _remove(self, directory: Node, name: bytes, node: Node, now: int) -> bool:
        """Remove a name; a directory that still holds what commits pass over stays, emptied of the rest."""
        if node.kind is EntryKind.DIRECTORY:
            self._put_below(node, None, now)
            if node.links:
                return False
        self.nodes.forget(self.nodes.detach(directory, name).node)
        self.touch(Touched(directory.id, name, node.id))
        return True

    def _put_node(self, node: Node, entry: TreeEntry, now: int) -> None:
        if node.kind is EntryKind.DIRECTORY:
            self._put_below(node, entry, now)
        elif self.nodes.freeze(node) != entry:
            node.data[:] = self.contents.read_blob(entry.content)
            if node.kind is EntryKind.FILE:
                node.mode = node.mode | 0o111 if entry.mode == EXECUTABLE else node.mode & ~0o111
            node.mtime_ns = node.ctime_ns = now
            self.touch_node(node)

    def _put_below(self, directory: Node, entry: TreeEntry | None, now: int) -> None:
        listing = {} if entry is None else self.contents.read_tree(entry.content)
        for name, link in list(directory.links.items()):
            if name not in listing and committable(name, link.node):
                self._remove(directory, name, link.node, now)
        for name, below in listing.items():
            self._put_name(directory, name, below, now)

    def is_above(self, one: Node, other: Node) -> bool:
        """Tell whether a directory is another or lies above it."""
        while other is not one and other.id != ROOT and other.places:
            other = self.nodes.table[_parent(other)]
        return other is one


def _parent(directory: Node) -> NodeId:
    return next(iter(directory.places))[0]


def _kind(entry: TreeEntry) -> EntryKind:
    if entry.mode == DIRECTORY:
        return EntryKind.DIRECTORY
    return EntryKind.SYMLINK if entry.mode == SYMLINK else EntryKind.FILE
