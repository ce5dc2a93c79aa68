"""Reading a tree by nodes and names: the half that a commit and a working layer have in common.

1. A tree stands on a ground: a working layer, or a commit. The ground gives rows that are current and describes them.
2. Names are looked up as they are, byte for byte. Nothing here changes anything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from store.contract import READING
from store.engines.git.committed import CommittedHandle, SmallHandle
from store.engines.git.content import ContentCache
from store.engines.git.nodes import NodeRow, describe_node
from store.engines.git.rows import Rows
from store.engines.git.vault import Vault
from store.engines.git.xattrs import decode_xattrs
from store.errors import IsADirectory, NotADirectory, NotFound, NotPermitted, ReadOnly
from store.model import Access, Attributes, NodeId


class Ground(Protocol):
    """What a tree is read from."""

    def reading(self) -> AbstractContextManager[Rows]:
        """Run the block with rows that are current."""

    def find(self, node: NodeId) -> NodeRow:
        """Return the row of a node. Raises `Stale`."""

    def describe(self, row: NodeRow) -> Attributes:
        """Return the attributes of a node."""


class TreeReading:
    """The reading half of `store.contract.Tree`, on any ground."""

    def __init__(self, ground: Ground, vault: Vault) -> None:
        """Read from `ground`, and the targets of symlinks from `vault`."""
        self._ground = ground
        self._vault = vault

    def lookup(self, parent: NodeId, name: bytes) -> Attributes:
        """Return what `name` in `parent` stands for."""
        with self._ground.reading() as rows:
            row = rows.child(as_directory(self._ground.find(parent)), name)
            if row is None:
                raise NotFound(name, "no such name")
            return self._ground.describe(row)

    def attributes(self, node: NodeId) -> Attributes:
        """Return the attributes of a node."""
        with self._ground.reading():
            return self._ground.describe(self._ground.find(node))

    def list(self, node: NodeId) -> Sequence[tuple[bytes, Attributes]]:
        """Return every name of a directory with its attributes, ordered by name."""
        with self._ground.reading() as rows:
            directory = as_directory(self._ground.find(node))
            return sorted(((name, self._ground.describe(row)) for name, row in rows.children(directory)), key=_name_of)

    def readlink(self, node: NodeId) -> bytes:
        """Return the target of a symlink. Raises `NotPermitted` for anything else."""
        with self._ground.reading():
            row = self._ground.find(node)
        if not row.is_symlink:
            raise NotPermitted(node, "not a symlink")
        return self._vault.link(row)

    def path(self, node: NodeId) -> bytes:
        """Return one path of the node now. Raises `Stale`."""
        with self._ground.reading() as rows:
            return rows.path(node)

    def xattrs(self, node: NodeId) -> dict[bytes, bytes]:
        """Return the ``user.*`` attributes of a node."""
        with self._ground.reading():
            return decode_xattrs(self._ground.find(node).xattrs)


class CommitTree(TreeReading):
    """The tree of a commit."""

    def __init__(self, vault: Vault, cache: ContentCache, tree: bytes, time_ns: int) -> None:
        """Show a tree whose nodes carry the time of its commit."""
        self._cache = cache
        super().__init__(CommitGround(vault, tree, time_ns), vault)

    def open(self, node: NodeId, access: Access = READING) -> CommittedHandle | SmallHandle:
        """Open a file. Raises `ReadOnly` for anything but reading."""
        if access.write or access.append or access.truncate:
            raise ReadOnly(node, "a commit never changes")
        with self._ground.reading():
            row = as_file(self._ground.find(node))
        if row.lower is None:
            raise NotPermitted(node, "it has no content")
        content = self._cache.small(row.lower)
        if content is not None:
            return SmallHandle(node, content, row.lower, self._cache)
        return CommittedHandle(node, self._cache.open(row.lower))


class CommitGround:
    """A commit's tree as rows that nobody changes."""

    def __init__(self, vault: Vault, tree: bytes, time_ns: int) -> None:
        """Lie over a tree."""
        self._vault = vault
        self._lock = threading.RLock()
        self._rows = Rows(vault.tree, tree, time_ns)

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Run the block with the rows."""
        with self._lock:
            yield self._rows

    def find(self, node: NodeId) -> NodeRow:
        """Return the row of a node. Raises `Stale`."""
        return self._rows.find(node)

    def describe(self, row: NodeRow) -> Attributes:
        """Return the attributes of a node."""
        if row.is_symlink:
            return describe_node(row, len(self._vault.link(row)), 1)
        return describe_node(row, 0 if row.is_directory or row.lower is None else self._vault.size(row.lower), 1)


def as_directory(row: NodeRow) -> NodeRow:
    """Return the row when it is a directory's. Raises `NotADirectory`."""
    if not row.is_directory:
        raise NotADirectory(row.id, "not a directory")
    return row


def as_file(row: NodeRow) -> NodeRow:
    """Return the row when it is a regular file's. Raises `IsADirectory`, `NotPermitted`."""
    if row.is_directory:
        raise IsADirectory(row.id, "a directory")
    if not row.is_file:
        raise NotPermitted(row.id, "not a regular file")
    return row


def _name_of(item: tuple[bytes, Attributes]) -> bytes:
    return item[0]
