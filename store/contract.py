"""What an engine promises: versioned trees on branches, and a working layer over each branch.

1.  A commit is atomic: readers see the tree before or the tree after, on disk too.
2.  When `commit`, `merge`, `create_branch`, `move_branch` or `delete_branch` returns, its effect survives power loss.
    A write that returned survives the end of every process; it survives power loss once `sync` returned for it.
3.  A branch moves only from the head the caller names (compare-and-set); the loser gets `Moved` and nothing changed.
4.  Forking is O(1) in the size of the tree; a commit costs what changed; content is shared between branches.
5.  Commits and snapshots never change. Any commit can be read back byte for byte.
6.  A branch's working layer is one tree shared by every caller in every process: what one did, the next call of another sees.
7.  Nodes keep their identity through renames, commits and restarts while the branch lives.
8.  Names are bytes. Names that no checkout can be trusted with are refused, or kept out of commits and reported.
9.  Nothing is held in memory that grows with the size of a file or, per call, with the size of the tree.
10. Every method may be called from several threads. None calls back. None knows a principal beyond the note it stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from store.exchange import Exchange
from store.model import (
    Access,
    AttributeChange,
    Attributes,
    Branch,
    Capability,
    Change,
    Commit,
    CommitId,
    Committed,
    EntryKind,
    ImportReport,
    Merged,
    NodeId,
    Note,
    Reclaimed,
    Space,
    Touched,
    Version,
)

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is (0 when unknown)."""

Condition = Callable[[Attributes | None], None]
"""Looks at what a name stands for (None: nothing) in the moment of a change; what it raises stops the change and leaves nothing behind.

It is called where nobody else can change the layer, so it calls nothing of the store."""

Attach = Callable[[bytes], Mapping[bytes, bytes | None]]
"""Given the `Attributes.content` that a file will have, returns the ``user.*`` attributes to set on it (None: removes one that the file
it replaces, or is a copy of, had)."""


READING = Access()
"""How `open` opens when nothing is said."""


class Content(Protocol):
    """What `Working.place` reads a file from."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`; nothing at the end."""


class Joined:
    """Contents read one after the other; an engine may copy them by the kernel instead."""

    def __init__(self, handles: Sequence[Handle]) -> None:
        """Read `handles`, which stay the caller's to close."""
        self.handles = tuple(handles)
        self._current = 0
        self._offset = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`; nothing at the end."""
        while self._current < len(self.handles):
            if data := self.handles[self._current].read(self._offset, size):
                self._offset += len(data)
                return data
            self._current, self._offset = self._current + 1, 0
        return b""


class Handle(Protocol):
    """An open file. Its node may be renamed or removed meanwhile; the handle stays good until closed."""

    node: NodeId

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`; fewer only at the end of the file."""

    def write(self, offset: int, data: bytes) -> int:
        """Store all of `data` at `offset` (at the end when opened for append) and return its length.

        Raises `NoSpace`, `TooLarge`, `NotPermitted` when not opened for writing.
        """

    def sync(self) -> None:
        """Return once content, size and name are on stable storage. Raises `NoSpace` or `StoreError` for what earlier writes hid."""

    def close(self) -> None:
        """Release the handle. Repeats do nothing."""

    def fileno(self) -> int:
        """Return a descriptor that reads this file now, owned by the handle (needs `Capability.DESCRIPTORS`)."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Bytes on stable storage that no name stands for; `id` cannot be guessed and finds them in any process."""

    id: str
    size: int


class Tree(Protocol):
    """A directory tree, read-only: a commit, or the reading half of a working layer.

    What a commit inherits has mode 0644 or 0755 (files), 0755 (directories) and 0777 (symlinks) and the time of the commit. A node
    whose last name went stays while a handle of it is open, with no links.
    `NotFound` where a name is missing, `NotADirectory` and `IsADirectory` where the kind is wrong, `Stale` for a node without a place.
    """

    def lookup(self, parent: NodeId, name: bytes) -> Attributes:
        """Return what `name` in `parent` stands for."""

    def attributes(self, node: NodeId) -> Attributes:
        """Return the attributes of a node."""

    def list(self, node: NodeId) -> Sequence[tuple[bytes, Attributes]]:
        """Return every name of a directory with its attributes, ordered by name."""

    def readlink(self, node: NodeId) -> bytes:
        """Return the target of a symlink. Raises `NotPermitted` for other kinds."""

    def open(self, node: NodeId, access: Access = READING) -> Handle:
        """Open a file. Raises `IsADirectory`, `NotPermitted` for other kinds, `ReadOnly` for writing to a commit's tree."""

    def path(self, node: NodeId) -> bytes:
        """Return one path of the node now. Raises `Stale` when it has none."""

    def xattrs(self, node: NodeId) -> dict[bytes, bytes]:
        """Return the ``user.*`` attributes of a node."""


class Working(Tree, Protocol):
    """The working layer of a branch: the head's tree with every uncommitted change over it."""

    def create(self, parent: NodeId, name: bytes, mode: int, kind: EntryKind = EntryKind.FILE) -> Attributes:
        """Make an empty file, pipe or socket. Raises `Exists`, `InvalidName`, `NoSpace`."""

    def place(
        self, parent: NodeId, name: bytes, mode: int, content: Content, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Make `name` stand for a file with all of `content`, at once, replacing a file or symlink there as a rename over it would.

        Durable when it returns; a crash leaves the former file or the whole new one, and no other name. The file that was
        there passes on its mode and attributes; `mode` counts where there was none. `attach` is called when the content is complete,
        then `condition`. Raises `IsADirectory`, `InvalidName`, `NoSpace`, and what both raise.
        """

    def copy(
        self, node: NodeId, parent: NodeId, name: bytes, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Do as `place` with the content, the attributes and (where there was no file) the mode of another file.

        The copy is the file as it was at one moment. Raises `IsADirectory`, `NotPermitted` for what is no file.
        """

    def stage(self, content: Content) -> Staged:
        """Keep bytes under no name, on stable storage, until `unstage`, the end of the branch, or a week is over. Raises `NoSpace`."""

    def staged(self, id: str) -> Handle:
        """Open staged bytes for reading. Raises `NotFound`."""

    def unstage(self, id: str) -> None:
        """Let staged bytes go; open handles stay good. Repeats do nothing."""

    def mkdir(self, parent: NodeId, name: bytes, mode: int) -> Attributes:
        """Make an empty directory; commits keep it even while empty. Raises `Exists`, `InvalidName`."""

    def symlink(self, parent: NodeId, name: bytes, target: bytes) -> Attributes:
        """Make a symlink. Raises `Exists`, `InvalidName`, `TooLarge` above 4,095 bytes."""

    def link(self, node: NodeId, parent: NodeId, name: bytes) -> Attributes:
        """Give a file another name; commits store the content once under both. Raises `Exists`, `NotPermitted` for directories."""

    def unlink(self, parent: NodeId, name: bytes, *, condition: Condition | None = None) -> None:
        """Remove a name of anything but a directory; what `condition` raises leaves it. Open handles stay good."""

    def rmdir(self, parent: NodeId, name: bytes) -> None:
        """Remove an empty directory. Raises `NotEmpty`."""

    def rename(
        self, parent: NodeId, name: bytes, target: NodeId, target_name: bytes, *, replace: bool = True, exchange: bool = False
    ) -> None:
        """Move a name, whatever is below it, at once; replace what is there as POSIX says, or refuse, or swap both.

        Raises `Exists` (with `replace` false), `NotEmpty`, `IsADirectory`, `NotADirectory`, `IntoItself`, `InvalidName`. Two names
        of one file stay as they are.
        """

    def set_attributes(self, node: NodeId, change: AttributeChange) -> Attributes:
        """Change mode, owner, times or size and return the result.

        Raises `TooLarge`, and `IsADirectory` or `NotPermitted` for the size of anything but a file. A file is executable to
        commits when its owner may execute it.
        """

    def set_xattr(self, node: NodeId, name: bytes, value: bytes | None) -> None:
        """Set or (None) remove one ``user.*`` attribute.

        Raises `NotFound` on removing a missing one, `NotPermitted` outside ``user.`` and for anything but files and directories,
        `TooLarge` above 64 KiB.
        """

    def sync(self) -> None:
        """Return once every write that returned so far is on stable storage."""

    def version(self) -> Version:
        """Return a number that grows with every change to this working tree, by any process; costs about a microsecond."""

    def touched(self, since: Version) -> Sequence[Touched] | None:
        """Return what changed after `since`, by any process; None when that is too long ago to tell."""

    def space(self) -> Space:
        """Return the room left."""

    def changes(self) -> Sequence[Change]:
        """Return the uncommitted changes against the head, renames included."""

    def left_out(self) -> Sequence[bytes]:
        """Return the paths that commits pass over (``.git`` folders, pipes, sockets), topmost only."""

    def close(self) -> None:
        """Release what this caller holds; the working layer itself stays."""


class Engine(Protocol):
    """A store of versioned trees."""

    capabilities: frozenset[Capability]

    def create_branch(self, name: str, at: CommitId | None, now: int, *, protected: bool = False) -> Branch:
        """Make a branch at a commit, or (None) at a first empty commit of its own.

        Raises `Exists` (also for ``a`` beside ``a/b``), `InvalidName`, `NotFound` for an unknown commit.
        """

    def branch(self, name: str) -> Branch:
        """Return a branch. Raises `NotFound`."""

    def branches(self, prefix: str = "") -> Sequence[Branch]:
        """Return the branches whose name starts with `prefix`, ordered by name."""

    def move_branch(self, name: str, expected: CommitId, target: CommitId) -> None:
        """Set the head when it is `expected`. Raises `Moved`, also when the working layer has uncommitted changes."""

    def delete_branch(self, name: str, expected: CommitId) -> None:
        """Remove the name and its working layer, whatever it holds; commits stay while a snapshot or branch reaches them.

        Raises `Moved`.
        """

    def working(self, name: str) -> Working:
        """Return the working layer of a branch. Raises `NotFound`, `ReadOnly` for a protected branch."""

    def dirty(self) -> Mapping[str, Version]:
        """Return the branches with uncommitted changes and the version of each working tree; costs what is dirty."""

    def commit(self, name: str, note: Note) -> Committed | None:
        """Freeze the working layer as one commit on the branch; None when nothing changed, or the branch is protected.

        Every write that returned before the call is in it; a write running meanwhile is in it whole or in the next one.
        """

    def resolve(self, text: str) -> CommitId:
        """Return the commit that a branch, a snapshot, a full id or a unique prefix of 7 or more digits stands for.

        Raises `NotFound`.
        """

    def read_commit(self, commit: CommitId) -> Commit:
        """Return a commit. Raises `NotFound`."""

    def log(self, start: CommitId, path: bytes | None = None) -> Iterator[Commit]:
        """Walk the history from `start`, newest first, children before parents.

        With `path`, only the commits whose entry there differs from that of every parent (the first commit: that have one).
        """

    def is_ancestor(self, ancestor: CommitId, of: CommitId) -> bool:
        """Tell whether a commit is another's ancestor or that commit itself."""

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the best common ancestor, or None."""

    def view(self, commit: CommitId) -> Tree:
        """Return the tree of a commit. Raises `NotFound`."""

    def diff(self, old: CommitId | None, new: CommitId) -> Sequence[Change]:
        """Return the differences from `old` (None: the empty tree) ordered by path; equal subtrees cost nothing."""

    def patch(self, change: Change, limit: int = 1 << 20) -> bytes | None:
        """Return one change as a unified diff, or None when it is binary or a side is above `limit` bytes."""

    def merge(self, into: str, expected: CommitId, source: CommitId, note: Note) -> Merged:
        """Merge a commit into a branch by a three-way merge and one merge commit with both parents, never a fast-forward.

        A source that is an ancestor already changes nothing. Conflicts leave the branch as it was. Renames on either side are
        followed. Raises `Moved`, also when the working layer has uncommitted changes.
        """

    def try_merge(self, into: CommitId, source: CommitId) -> Merged:
        """Tell what `merge` would find, changing nothing (`commit` is `into` when clean)."""

    def restore(self, name: str, source: CommitId, paths: Sequence[bytes]) -> None:
        """Put paths of the working layer back to what `source` holds (removing what it does not); no path means everything.

        What commits pass over stays where it is. Raises `ReadOnly` for a protected branch.
        """

    def create_snapshot(self, name: str, commit: CommitId, now: int) -> None:
        """Give a commit a name that never moves. Raises `Exists`."""

    def snapshots(self) -> Sequence[Branch]:
        """Return the snapshots, ordered by name."""

    def import_directory(self, source: Path, branch: str, note: Note, progress: Progress) -> ImportReport:
        """Commit a directory's content as a new branch. Raises `ImportFailed`, `HostileTree`, `Exists`."""

    def import_git(self, source: str, branch: str, now: int, progress: Progress) -> ImportReport:
        """Take over the history of a git repository (path or URL) as a new branch (needs `Capability.GIT_EXPORT`).

        Raises as `import_directory`.
        """

    def export_directory(self, commit: CommitId, target: Path, progress: Progress) -> int:
        """Write a commit's tree into an empty or missing directory and return the number of files. Raises `Exists`."""

    def export_git(self, branch: str, target: Path, progress: Progress) -> int:
        """Write a branch with its history as a bare repository that plain git clones, and return the number of commits.

        Needs `Capability.GIT_EXPORT`.
        """

    def exchange(self, folder: Path) -> Exchange:
        """Let git read and write the histories (needs `Capability.GIT_EXCHANGE`); what may be lost is kept below `folder`.

        The same exchange for the same folder.
        """

    def unmerged(self, name: str, target: str) -> bool:
        """Tell whether the branch holds what `target`'s history does not: uncommitted changes, or a path that it changed and that no
        commit of the target since their common ancestor holds alike. So a squashed merge counts as merged.
        """

    def size(self, name: str) -> int:
        """Return the bytes on disk that deleting the branch would free at least."""

    def deferring(self) -> AbstractContextManager[None]:
        """Run a block in which what this thread does may return before it is on stable storage, as much as that can be deferred.

        It is visible to everybody at once and survives the end of every process; who began the block calls `settle` before it
        acknowledges anything. One `settle` serves all who deferred before it.
        """

    def settle(self) -> None:
        """Return once everything that was deferred before this call, by any thread, is on stable storage."""

    def recovered(self) -> Sequence[str]:
        """Return a sentence for each thing the opening had to put right after a crash; empty after a clean stop."""

    def maintain(self, now: int) -> Reclaimed:
        """Do the work that need not be done at once (packing, repacking, cache eviction). Safe at any time, also twice."""

    def close(self) -> None:
        """Finish background work and release everything. A crash instead of `close` loses nothing that was promised."""
