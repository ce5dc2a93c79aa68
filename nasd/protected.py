"""A protected branch, or one commit, as a working layer that only reads. Of a branch it shows the head of the moment, and follows it.

1. A node stands for a path: what is at that path after the branch moved is what the node shows, and `Stale` when nothing is.
2. Open handles keep the content they were opened on. Every change raises `ReadOnly`.
3. One lock guards the table of nodes; reading happens outside of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NoReturn

from nasd.trees import node_at
from store import Engine
from store.contract import Attach, Condition, Content, Handle, Staged, Tree
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
    """The `Working` contract over the head of a protected branch, or over a commit. Any thread may call."""

    def __init__(self, engine: Engine, branch: str, space: Space, at: CommitId | None = None) -> None:
        """Show `branch`, or of it the commit `at`; `space` is what `statfs` tells. Raises `store.errors.NotFound`."""
        self._engine = engine
        self._branch = branch
        self._at = at
        self._space = space
        self._lock = threading.Lock()
        self._nodes: dict[bytes, NodeId] = {b"": ROOT}
        self._paths: dict[NodeId, bytes] = {ROOT: b""}
        self._inner: dict[NodeId, NodeId] = {}
        self._head: CommitId | None = None
        self._version = Version(0)
        self._refresh()

    def lookup(self, parent: NodeId, name: bytes) -> Attributes:
        """Return what a name stands for."""
        tree, path = self._refresh(), self.path(parent)
        found = tree.lookup(self._inside(tree, parent), name)
        return self._own(tree, _join(path, name), found)

    def attributes(self, node: NodeId) -> Attributes:
        """Return the attributes of a node."""
        tree = self._refresh()
        return tree.attributes(self._inside(tree, node))._replace(node=node)

    def list(self, node: NodeId) -> Sequence[tuple[bytes, Attributes]]:
        """Return every name of a directory with its attributes, ordered by name."""
        tree, path = self._refresh(), self.path(node)
        return [(name, self._own(tree, _join(path, name), found)) for name, found in tree.list(self._inside(tree, node))]

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

    def place(
        self, parent: NodeId, name: bytes, mode: int, content: Content, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Refuse."""
        self._refuse()

    def copy(
        self, node: NodeId, parent: NodeId, name: bytes, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Refuse."""
        self._refuse()

    def stage(self, content: Content) -> Staged:
        """Refuse."""
        self._refuse()

    def staged(self, id: str) -> Handle:
        """Refuse."""
        self._refuse()

    def unstage(self, id: str) -> None:
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

    def unlink(self, parent: NodeId, name: bytes, *, condition: Condition | None = None) -> None:
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
        raise ReadOnly(self._branch, "moves by merges only" if self._at is None else "a commit never changes")

    def _refresh(self) -> Tree:
        head = self._at or self._engine.branch(self._branch).head
        with self._lock:
            if head != self._head:
                self._tree: Tree = self._engine.view(head)
                self._head, self._version = head, Version(self._version + 1)
                self._inner = {ROOT: ROOT}
            return self._tree

    def _inside(self, tree: Tree, node: NodeId) -> NodeId:
        """Return the node that the tree of the moment has at our node's path."""
        with self._lock:
            known = self._inner.get(node) if tree is self._tree else None
        if known is not None:
            return known
        path = self.path(node)
        try:
            found = node_at(tree, path)
        except (NotFound, NotADirectory):
            raise Stale(path, "is no longer there") from None
        self._remember(tree, node, found)
        return found

    def _own(self, tree: Tree, path: bytes, found: Attributes) -> Attributes:
        with self._lock:
            node = self._nodes.setdefault(path, NodeId(len(self._nodes) + 1))
            self._paths[node] = path
            if tree is self._tree:
                self._inner[node] = found.node
        return found._replace(node=node)

    def _remember(self, tree: Tree, node: NodeId, inner: NodeId) -> None:
        with self._lock:
            if tree is self._tree:
                self._inner[node] = inner


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
