"""A protected branch as a working layer that only reads: it shows the head of the moment, and follows it when it moves.

1. A node stands for a path: what is at that path after the branch moved is what the node shows, and `Stale` when nothing is.
2. Open handles keep the content they were opened on. Every change raises `ReadOnly`.
3. One lock guards the table of nodes; reading happens outside of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from nasd.trees import node_at
from store import Engine
from store.contract import Content, Handle, Tree
from store.errors import NotADirectory, NotFound, ReadOnly, Stale
from store.model import (
    ROOT,
    Access,
    AttributeChange,
    Attributes,
    Change,
    CommitId,
    EntryKind,
    NodeId,
    Space,
    Touched,
    Version,
)

READ = Access()


class ProtectedTree:
    """The `Working` contract over the head of a protected branch. Any thread may call."""

    def __init__(self, engine: Engine, branch: str, space: Space) -> None:
        """Show `branch`; `space` is what `statfs` tells. Raises `store.errors.NotFound`."""
        self._engine = engine
        self._branch = branch
        self._space = space
        self._lock = threading.Lock()
        self._nodes: dict[bytes, NodeId] = {b"": ROOT}
        self._paths: dict[NodeId, bytes] = {ROOT: b""}
        self._head: CommitId | None = None
        self._version = Version(0)
        self._refresh()

    def lookup(self, parent: NodeId, name: bytes) -> Attributes:
        """Return what a name stands for."""
        tree, path = self._refresh(), self.path(parent)
        found = tree.lookup(self._inside(tree, parent), name)
        return self._own(_join(path, name), found)

    def attributes(self, node: NodeId) -> Attributes:
        """Return the attributes of a node."""
        tree = self._refresh()
        return replace(tree.attributes(self._inside(tree, node)), node=node)

    def list(self, node: NodeId) -> Sequence[tuple[bytes, Attributes]]:
        """Return every name of a directory with its attributes, ordered by name."""
        tree, path = self._refresh(), self.path(node)
        return [(name, self._own(_join(path, name), found)) for name, found in tree.list(self._inside(tree, node))]

    def readlink(self, node: NodeId) -> bytes:
        """Return the target of a symlink."""
        tree = self._refresh()
        return tree.readlink(self._inside(tree, node))

    def open(self, node: NodeId, access: Access = READ) -> Handle:
        """Open a file for reading. Raises `ReadOnly` for anything else."""
        if access.write or access.truncate:
            self._refuse()
        tree = self._refresh()
        return tree.open(self._inside(tree, node), access)

    def path(self, node: NodeId) -> bytes:
        """Return the path of a node."""
        with self._lock:
            path = self._paths.get(node)
        if path is None:
            raise Stale(node, "was not looked up here")
        return path

    def xattrs(self, node: NodeId) -> dict[bytes, bytes]:
        """Return the ``user.*`` attributes of a node."""
        tree = self._refresh()
        return tree.xattrs(self._inside(tree, node))

    def version(self) -> Version:
        """Return a number that grows when the branch moves."""
        self._refresh()
        return self._version

    def touched(self, since: Version) -> Sequence[Touched] | None:
        """Return nothing while the branch stands still, None once it moved."""
        return () if self.version() == since else None

    def space(self) -> Space:
        """Return the room on the disk."""
        return self._space

    def changes(self) -> Sequence[Change]:
        """Return nothing: a protected branch has no uncommitted work."""
        return ()

    def left_out(self) -> Sequence[bytes]:
        """Return nothing: a protected branch has no uncommitted work."""
        return ()

    def sync(self) -> None:
        """Return at once: there is nothing to write."""

    def close(self) -> None:
        """Do nothing: handles are closed one by one."""

    def create(self, parent: NodeId, name: bytes, mode: int, kind: EntryKind = EntryKind.FILE) -> Attributes:
        """Refuse."""
        self._refuse()

    def place(self, parent: NodeId, name: bytes, mode: int, content: Content) -> Attributes:
        """Refuse."""
        self._refuse()

    def mkdir(self, parent: NodeId, name: bytes, mode: int) -> Attributes:
        """Refuse."""
        self._refuse()

    def symlink(self, parent: NodeId, name: bytes, target: bytes) -> Attributes:
        """Refuse."""
        self._refuse()

    def link(self, node: NodeId, parent: NodeId, name: bytes) -> Attributes:
        """Refuse."""
        self._refuse()

    def unlink(self, parent: NodeId, name: bytes) -> None:
        """Refuse."""
        self._refuse()

    def rmdir(self, parent: NodeId, name: bytes) -> None:
        """Refuse."""
        self._refuse()

    def rename(
        self, parent: NodeId, name: bytes, target: NodeId, target_name: bytes, *, replace: bool = True, exchange: bool = False
    ) -> None:
        """Refuse."""
        self._refuse()

    def set_attributes(self, node: NodeId, change: AttributeChange) -> Attributes:
        """Refuse."""
        self._refuse()

    def set_xattr(self, node: NodeId, name: bytes, value: bytes | None) -> None:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ReadOnly(self._branch, "moves by merges only")

    def _refresh(self) -> Tree:
        head = self._engine.branch(self._branch).head
        with self._lock:
            if head != self._head:
                self._tree: Tree = self._engine.view(head)
                self._head, self._version = head, Version(self._version + 1)
            return self._tree

    def _inside(self, tree: Tree, node: NodeId) -> NodeId:
        """Return the node that the tree of the moment has at our node's path."""
        path = self.path(node)
        try:
            return node_at(tree, path)
        except (NotFound, NotADirectory):
            raise Stale(path, "is no longer there") from None

    def _own(self, path: bytes, found: Attributes) -> Attributes:
        with self._lock:
            node = self._nodes.setdefault(path, NodeId(len(self._nodes) + 1))
            self._paths[node] = path
        return replace(found, node=node)


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
