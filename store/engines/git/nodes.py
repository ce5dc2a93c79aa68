"""Nodes of a working layer as rows: what one holds, which identity it has, and how it looks from outside.

1. Pure: values in, values out.
2. A node that nobody touched has no row; its identity follows from its parent's and its name, so it is the same in every
   process and after every restart. A node that was touched keeps the identity it had.
3. Identities are positive and below 2**63; `ROOT` and 0 (no node) are never computed.
4. The content of an upper file is identified by its number, its size and its ctime, which nobody can set back; what is committed and has
   no upper file, by its blob. A row keeps the identity through what changes the ctime and not the content (setting times) and through
   the loss of the upper file (a commit has it): `content` holds while the upper file's ctime is `stamped_ns`, and without an upper file.
"""

from __future__ import annotations

from binascii import hexlify
from hashlib import blake2b
from typing import NamedTuple, Protocol

from store.engines.git.objects import GITLINK
from store.model import ROOT, Attributes, EntryKind, NodeId
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry

NOTHING = NodeId(0)
"""The node of a name under which nothing is, whatever the tree below says."""

GONE = 0
"""The kind number of a node that was removed."""

CLEAN, DIRTY, PARKED = 0, 1, 2
"""What a row says of the next commit: as the head has it; to be looked at; not as the head has it, but where no commit looks."""

_NUMBERS = {EntryKind.FILE: 1, EntryKind.DIRECTORY: 2, EntryKind.SYMLINK: 3, EntryKind.FIFO: 4, EntryKind.SOCKET: 5}
_KINDS = {number: kind for kind, number in _NUMBERS.items()}
_FROM_GIT = {
    DIRECTORY: (_NUMBERS[EntryKind.DIRECTORY], 0o755),
    GITLINK: (_NUMBERS[EntryKind.DIRECTORY], 0o755),
    FILE: (_NUMBERS[EntryKind.FILE], 0o644),
    EXECUTABLE: (_NUMBERS[EntryKind.FILE], 0o755),
    SYMLINK: (_NUMBERS[EntryKind.SYMLINK], 0o777),
}
_REGULAR = (_NUMBERS[EntryKind.FILE], 0o644)


class NodeRow(NamedTuple):
    """One node, field by field as its row has it. `size` is None while it is the size of the blob below."""

    id: NodeId
    kind: int
    mode: int
    lower: bytes | None
    size: int | None
    mtime_ns: int
    ctime_ns: int
    atime_ns: int
    uid: int | None = None
    gid: int | None = None
    upper: int | None = None
    target: bytes | None = None
    xattrs: bytes | None = None
    dirty: int = 0
    content: bytes | None = None
    stamped_ns: int | None = None

    def at(self, ctime_ns: int, mtime_ns: int | None = None) -> NodeRow:
        """Return the row with another ctime, and another mtime if one is given (`_replace` takes three times as long)."""
        return NodeRow._make((*self[:5], self[5] if mtime_ns is None else mtime_ns, ctime_ns, *self[7:]))

    @property
    def is_directory(self) -> bool:
        """Tell whether the node is a directory."""
        return self.kind == 2

    @property
    def is_file(self) -> bool:
        """Tell whether the node is a regular file."""
        return self.kind == 1

    @property
    def is_symlink(self) -> bool:
        """Tell whether the node is a symlink."""
        return self.kind == 3

    @property
    def entry_kind(self) -> EntryKind:
        """Return the kind in the store's words."""
        return _KINDS[self.kind]

    @property
    def git_mode(self) -> int | None:
        """Return the mode that a tree gives the node, or None when no commit can hold it."""
        if self.is_file:
            return EXECUTABLE if self.mode & 0o100 else FILE
        return {2: DIRECTORY, 3: SYMLINK}.get(self.kind)


class Written(Protocol):
    """What a disk says of a file."""

    @property
    def st_size(self) -> int:
        """Return its bytes."""

    @property
    def st_mtime_ns(self) -> int:
        """Return when its content changed, in nanoseconds."""

    @property
    def st_ctime_ns(self) -> int:
        """Return when anything of it changed, in nanoseconds."""


SELECT_NODES = (
    "SELECT id, kind, mode, lower, size, mtime_ns, ctime_ns, atime_ns, uid, gid, upper, target, xattrs, dirty, content, stamped_ns"
    " FROM node WHERE branch = ? AND rev > ?"
)
"""Reads the rows of a branch that changed after a version, field by field as `NodeRow` has them."""

PUT_NODE = (
    "INSERT OR REPLACE INTO node (branch, id, kind, mode, lower, size, mtime_ns, ctime_ns, atime_ns, uid, gid, upper, target, xattrs,"
    " dirty, content, stamped_ns, ver, rev) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
"""Writes a row: the branch, the fields of `NodeRow`, the version of the last visible change and of the last change."""


def stable_id(parent: NodeId, name: bytes, salt: int = 0) -> NodeId:
    """Return the identity of a node nobody touched; `salt` gives another when that one is taken."""
    digest = blake2b(name, digest_size=8, key=b"%d %d" % (parent, salt)).digest()
    return NodeId(int.from_bytes(digest, "big") >> 1 | 2)


def fresh_row(node: NodeId, kind: EntryKind, mode: int, now: int) -> NodeRow:
    """Return the row of a node made just now, in nanoseconds."""
    return NodeRow(node, _NUMBERS[kind], mode & 0o7777, None, 0, now, now, now, dirty=DIRTY)


def inherited_row(node: NodeId, entry: TreeEntry, time_ns: int) -> NodeRow:
    """Return how a node looks that is as its tree has it; a submodule is an empty directory."""
    kind, mode = _FROM_GIT.get(entry.mode, _REGULAR)
    lower = None if entry.mode == GITLINK else entry.content
    return NodeRow(node, kind, mode, lower, None, time_ns, time_ns, time_ns)


def gone_row(node: NodeId) -> NodeRow:
    """Return the row of a node that was removed."""
    return NodeRow(node, GONE, 0, None, 0, 0, 0, 0)


def root_row(tree: bytes, time_ns: int) -> NodeRow:
    """Return the row of a root nobody touched."""
    return inherited_row(ROOT, TreeEntry(DIRECTORY, tree), time_ns)


def describe_node(row: NodeRow, size: int, links: int) -> Attributes:
    """Return a row as attributes."""
    content = b"" if row.kind != 1 else row.content or hexlify(row.lower or b"")
    return Attributes(row.id, _KINDS[row.kind], row.mode, size, links, row.mtime_ns, row.ctime_ns, row.atime_ns, row.uid, row.gid, content)


def describe_written(row: NodeRow, found: Written, links: int) -> Attributes:
    """Return a row as attributes, with size and times from the file that holds the content."""
    kind, ctime_ns, content = _KINDS[row.kind], max(row.ctime_ns, found.st_ctime_ns), identify_content(row, found)
    return Attributes(row.id, kind, row.mode, found.st_size, links, found.st_mtime_ns, ctime_ns, row.atime_ns, row.uid, row.gid, content)


def identify_content(row: NodeRow, found: Written) -> bytes:
    """Return what identifies the content of a row's upper file."""
    if row.content is not None and row.stamped_ns == found.st_ctime_ns:
        return row.content
    return b"%x-%x-%x" % (row.upper or 0, found.st_size, found.st_ctime_ns)


def stamp_content(row: NodeRow, content: bytes, found: Written) -> NodeRow:
    """Return the row with the identity of its content kept, as long as the upper file stays as it was found."""
    return row._replace(content=content, stamped_ns=found.st_ctime_ns)
