"""The values the store speaks in: frozen, without I/O and without a clock.

1. Names and paths of files are `bytes`; a path is names joined by ``/`` with no leading or trailing slash; ``b""`` is the root.
2. Times are integers: nanoseconds since the epoch for files, seconds for commits.
3. A node is the identity of a file or directory while its branch lives: a rename keeps it.
"""

from __future__ import annotations

import enum
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NewType

CommitId = NewType("CommitId", str)
ContentId = NewType("ContentId", str)
NodeId = NewType("NodeId", int)
Version = NewType("Version", int)

ROOT = NodeId(1)
"""The node of the root directory of every tree."""


class EntryKind(enum.Enum):
    """What a name stands for."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    FIFO = "fifo"
    SOCKET = "socket"

    __hash__ = object.__hash__  # a member is one object; Enum's own is a call on the way of every stat

    @property
    def versioned(self) -> bool:
        """Tell whether commits hold this kind; the others live in the working layer only."""
        return self in (EntryKind.FILE, EntryKind.DIRECTORY, EntryKind.SYMLINK)


_FORMAT = {
    EntryKind.FILE: stat.S_IFREG,
    EntryKind.DIRECTORY: stat.S_IFDIR,
    EntryKind.SYMLINK: stat.S_IFLNK,
    EntryKind.FIFO: stat.S_IFIFO,
    EntryKind.SOCKET: stat.S_IFSOCK,
}


class Capability(enum.Enum):
    """Powers an engine may declare: a declared one must pass its suite, an undeclared one must raise `Unsupported`."""

    XATTRS = "xattrs"
    HARD_LINKS = "hard links"
    SPARSE = "sparse files"
    DESCRIPTORS = "descriptors of files that the kernel can read"
    DURABLE = "survives the end of its process"
    GIT_EXPORT = "takes over and exports plain git"
    GIT_EXCHANGE = "git's own programs read and write its histories"


class Attributes(NamedTuple):
    """What `stat` tells of a node; `mode` is the permission bits, `uid` and `gid` are None until somebody changes the owner.

    `content` identifies the content of a file: other bytes, another value; metadata, renames and commits leave it as it is. It is
    empty for what is no file. In the tree of a commit, and for a file nobody touched since, it is the text of `Side.content`. A tuple,
    because every `stat` makes one and a frozen dataclass takes four times as long.
    """

    node: NodeId
    kind: EntryKind
    mode: int
    size: int
    links: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int
    uid: int | None = None
    gid: int | None = None
    content: bytes = b""

    @property
    def st_mode(self) -> int:
        """Return type and permission bits in one number, as POSIX `st_mode`."""
        return _FORMAT[self.kind] | self.mode


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """The attributes to set; None leaves one as it is. `size` truncates or extends with zeros."""

    mode: int | None = None
    size: int | None = None
    mtime_ns: int | None = None
    atime_ns: int | None = None
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """How a file is opened."""

    read: bool = True
    write: bool = False
    append: bool = False
    truncate: bool = False


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who made a commit, for whom, in which run and under which lease; empty strings where it does not apply."""

    principal: str
    on_behalf_of: str = ""
    run: str = ""
    lease: str = ""
    proposal: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What a commit says of itself; `when` is in seconds since the epoch."""

    message: str
    provenance: Provenance
    when: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A frozen tree with parents and a note. Imported history keeps its own authors in `author`."""

    id: CommitId
    parents: tuple[CommitId, ...]
    tree: ContentId
    note: Note
    author: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A moving name. `base` is the commit it was forked at, `created` is in seconds."""

    name: str
    head: CommitId
    base: CommitId
    created: int
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did: its id, how many paths changed, and what deserves a word.

    `twins` are groups of paths, in directories that the commit changed, that are one path on other systems; `left_out` are paths
    that stay in the working layer because no commit can hold them (``.git`` folders, sockets, pipes).
    """

    id: CommitId
    changed: int
    twins: tuple[tuple[bytes, ...], ...] = ()
    left_out: tuple[bytes, ...] = ()


class ChangeKind(enum.Enum):
    """How one path differs between two trees."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class Side:
    """One path of one tree: its kind, whether it is executable, the identity and size in bytes of its content."""

    kind: EntryKind
    executable: bool
    content: ContentId
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `origin` is the former path of a rename; `old` and `new` are None where nothing is there."""

    kind: ChangeKind
    path: bytes
    old: Side | None
    new: Side | None
    origin: bytes | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that both sides changed in ways that do not combine; every side is kept and named."""

    path: bytes
    base: Side | None
    ours: Side | None
    theirs: Side | None
    why: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge: a commit, or the conflicts that prevented one (then nothing moved).

    `commit` equals the target's head when there was nothing to merge.
    """

    commit: CommitId | None
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class Touched:
    """A name or a node that changed in a working tree; doors drop what they cached of it.

    `name` is None when only the node's content or attributes changed.
    """

    parent: NodeId | None
    name: bytes | None
    node: NodeId


@dataclass(frozen=True, slots=True)
class Space:
    """Room in bytes and nodes for `statfs`."""

    total: int
    free: int
    files: int = 0


Reasons = Mapping[bytes, str]
"""Paths, each with the reason it was passed over."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import brought in and what it passed over, with the reason for each path passed over."""

    commit: CommitId
    files: int
    bytes: int
    passed_over: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """What maintenance freed, in bytes, and what it looked at."""

    bytes: int
    objects: int = 0
    files: int = 0
