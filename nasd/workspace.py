"""Where a request for a file meets trust and store: one authority's view of one branch.

1. Every method decides first, then accounts, then acts; nothing touches the store on another way.
2. What the authority cannot see is `Kind.NOT_FOUND` and missing from listings; a directory on the way to something visible is visible.
3. What it can see and may not do is `Kind.DENIED` (`Kind.READ_ONLY` on a protected branch, `Kind.BUDGET` when spent).
4. A rename needs the right to write both names; for a directory also everything that could be below both. Who moves, links or copies what
   is labelled has read it, as far as its taint goes: under the next name the label would not be seen before the next commit.
5. A file that was opened and then lost its last name stays usable through what opened it, as POSIX wants. One that a rename
   replaced can still be opened for a moment, under the rights of the path it had: who looks a name up before an
   atomic save and opens it after gets the former file, not an error.
6. Any thread may call; every error of the contexts leaves as a `Fault`.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Access, Attach, AttributeChange, Attributes, Condition, Content, Document, Handle, Space, Staged, Touch
from nasd.authority import Authority
from nasd.deciding import LABEL_XATTRS, Deciding, absent, join_path
from nasd.faults import guarded
from nasd.meter import Meter
from nasd.open_files import CheckedHandle, MeteredContent
from nasd.reads import Reads
from store import model as stored
from store.contract import Joined, Tree, Working
from store.errors import NotFound, Stale, StoreError
from store.model import EntryKind, NodeId, Version
from trust.model import Action, BudgetKind

_SPECIAL = {stat.S_IFREG: EntryKind.FILE, stat.S_IFIFO: EntryKind.FIFO, stat.S_IFSOCK: EntryKind.SOCKET}


class BranchWorkspace(Deciding):
    """The `Workspace` port over a working layer."""

    def __init__(
        self,
        branch: str,
        working: Working,
        authority: Authority,
        meter: Meter,
        *,
        commit: Callable[[str], Document],
        committed: Callable[[], Tree],
        note_reads: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Serve `working` under `authority`.

        `commit` makes a commit with a message, `committed` gives the tree of the last one, `note_reads` keeps a batch of the read manifest.
        """
        super().__init__(branch, working, authority, committed, time.monotonic)
        self._meter = meter
        self._reads = Reads()
        self._commit = commit
        self._note_reads = note_reads

    # -- seeing ---------------------------------------------------------------------------------------------------

    @guarded
    def lookup(self, parent: int, name: bytes) -> Attributes:
        """Return what a name stands for."""
        directory = self._working.path(NodeId(parent))
        try:
            attributes = self._working.lookup(NodeId(parent), name)
        except NotFound:
            self._authority.check()
            raise absent(directory, name) from None
        if not self._authority.sees(directory, name, is_directory=attributes.kind is EntryKind.DIRECTORY):
            raise absent(directory, name)
        return attributes

    @guarded
    def attributes(self, node: int) -> Attributes:
        """Return the attributes of a node."""
        attributes = self._working.attributes(NodeId(node))
        self._require_visible(node, attributes)
        return attributes

    @guarded
    def list(self, node: int) -> Sequence[tuple[bytes, Attributes]]:
        """Return the visible names of a directory with their attributes, ordered by name."""
        directory = self._working.path(NodeId(node))
        if not self._authority.sees(directory, None, is_directory=True):
            raise absent(directory, None)
        self._authority.observe_names(directory)
        entries = self._working.list(NodeId(node))
        if self._authority.sees_all(directory):
            return entries
        sees = self._authority.sees
        return [entry for entry in entries if sees(directory, entry[0], is_directory=entry[1].kind is EntryKind.DIRECTORY)]

    @guarded
    def readlink(self, node: int) -> bytes:
        """Return the target of a symlink."""
        self._demand_read(node)
        try:
            return self._working.readlink(NodeId(node))
        except Stale:
            if (former := self._replaced.target(node)) is not None:
                return former
            raise

    @guarded
    def xattrs(self, node: int) -> Mapping[bytes, bytes]:
        """Return the ``user.*`` attributes."""
        attributes = self._working.attributes(NodeId(node))
        self._require_visible(node, attributes)
        own = {name: value for name, value in self._working.xattrs(NodeId(node)).items() if not name.startswith(LABEL_XATTRS)}
        return own | {LABEL_XATTRS + part.encode(): word.encode() for part, word in self._label_of(node, attributes).items()}

    @guarded
    def label(self, node: int) -> Mapping[str, str]:
        """Return ``origin`` and ``sensitivity`` of a node; empty for what nobody labelled, is gone, or is not for the caller to see."""
        try:
            attributes = self._working.attributes(NodeId(node))
            path = self._working.path(NodeId(node))
        except Stale:
            return {}
        label = self._label_at(path, attributes.content, self._is_committed)
        directory, _, name = path.rpartition(b"/")
        is_directory = attributes.kind is EntryKind.DIRECTORY
        return label if label and self._authority.sees(directory, name or None, is_directory=is_directory) else {}

    @guarded
    def labels(self, node: int, entries: Sequence[tuple[bytes, Attributes]]) -> Mapping[bytes, Mapping[str, str]]:
        """Return the labels of entries that `list` gave of a directory, by name; those without are left out."""
        return self._labels_in(self._working.path(NodeId(node)), entries)

    @guarded
    def path(self, node: int) -> bytes:
        """Return one path of the node."""
        return self._working.path(NodeId(node))

    # -- files ----------------------------------------------------------------------------------------------------

    @guarded
    def open(self, node: int, access: Access) -> Handle:
        """Open a file."""
        path = self._path_of(node)
        reading = None
        if access.read:
            content = self._content_of(node)
            self._demand_read_at(path, content)
            self._meter.spend(BudgetKind.READS, 1)
            reading = self._reads.begin(path, content, self._authority.now())
        if access.write or access.truncate:
            self._demand_path(Action.WRITE, path)
        wanted = stored.Access(access.read, access.write, access.append, access.truncate)
        return CheckedHandle(self._working.open(NodeId(node), wanted), self._authority, self._meter, self._open, reading)

    @guarded
    def create(self, parent: int, name: bytes, mode: int) -> tuple[Attributes, Handle]:
        """Make an empty file and open it for reading and writing."""
        self._demand_name(Action.WRITE, parent, name)
        attributes = self._working.create(NodeId(parent), name, mode)
        handle = self._working.open(attributes.node, stored.Access(read=True, write=True))
        return attributes, CheckedHandle(handle, self._authority, self._meter, self._open)

    @guarded
    def publish(
        self,
        parent: int,
        name: bytes,
        mode: int,
        content: Content,
        *,
        condition: Condition | None = None,
        attach: Attach | None = None,
    ) -> Attributes:
        """Put a whole file under a name, at once, and return when it is on stable storage."""
        self._demand_name(Action.WRITE, parent, name)
        metered, judge = MeteredContent(content, self._authority, self._meter), self._for_caller(parent, name, condition)
        return self._working.place(NodeId(parent), name, mode, metered, condition=judge, attach=attach)

    @guarded
    def copy(self, node: int, parent: int, name: bytes, *, condition: Condition | None = None, attach: Attach | None = None) -> Attributes:
        """Put a copy of a file under a name; it is a read of one and a write of the other."""
        source = self._path_of(node)
        self._demand_read_at(source, self._content_of(node))
        self._demand_name(Action.WRITE, parent, name)
        size = self._working.attributes(NodeId(node)).size
        self._meter.spend(BudgetKind.READS, 1)
        self._meter.spend(BudgetKind.BYTES_READ, size)
        now = self._authority.now()
        self._reads.begin(source, self._content_of(node), now).cover(0, size, now)
        judge = self._for_caller(parent, name, condition)
        with self._spending(size):
            return self._working.copy(NodeId(node), NodeId(parent), name, condition=judge, attach=attach)

    @guarded
    def stage(self, content: Content) -> Staged:
        """Keep bytes that no name stands for yet; any lease that may write anything may."""
        self._authority.check()
        if not self._authority.may_somewhere(Action.WRITE):
            raise Fault(Kind.DENIED, "the lease carries no write", hint="ask the owner for a lease that does")
        return self._working.stage(MeteredContent(content, self._authority, self._meter))

    @guarded
    def staged(self, id: str) -> Handle:
        """Open staged bytes for reading."""
        return CheckedHandle(self._working.staged(id), self._authority, self._meter, self._open)

    @guarded
    def unstage(self, id: str) -> None:
        """Let staged bytes go."""
        self._working.unstage(id)

    @guarded
    def assemble(
        self,
        parent: int,
        name: bytes,
        mode: int,
        ids: Sequence[str],
        *,
        condition: Condition | None = None,
        attach: Attach | None = None,
    ) -> Attributes:
        """Put a file made of staged bytes, one after the other, as `publish` does; they were accounted when they were staged."""
        self._demand_name(Action.WRITE, parent, name)
        judge = self._for_caller(parent, name, condition)
        with ExitStack() as opened:
            parts = [opened.enter_context(closing(self._working.staged(id))) for id in ids]
            return self._working.place(NodeId(parent), name, mode, Joined(parts), condition=judge, attach=attach)

    @guarded
    def make_special(self, parent: int, name: bytes, st_mode: int) -> Attributes:
        """Make a pipe or a socket, or an empty file."""
        kind = _SPECIAL.get(stat.S_IFMT(st_mode) or stat.S_IFREG)
        if kind is None:
            raise Fault(Kind.NOT_PERMITTED, "devices have no place in a branch", hint="make a file, a pipe or a socket")
        self._demand_name(Action.WRITE, parent, name)
        return self._working.create(NodeId(parent), name, stat.S_IMODE(st_mode), kind)

    # -- names ----------------------------------------------------------------------------------------------------

    @guarded
    def mkdir(self, parent: int, name: bytes, mode: int) -> Attributes:
        """Make a directory."""
        self._demand_name(Action.WRITE, parent, name)
        return self._working.mkdir(NodeId(parent), name, mode)

    @guarded
    def symlink(self, parent: int, name: bytes, target: bytes) -> Attributes:
        """Make a symlink."""
        self._demand_name(Action.WRITE, parent, name)
        self._meter.spend(BudgetKind.BYTES_WRITTEN, len(target))
        return self._working.symlink(NodeId(parent), name, target)

    @guarded
    def link(self, node: int, parent: int, name: bytes) -> Attributes:
        """Give a file another name; it needs the right to read and write the file under the name it has."""
        self._demand_read(node)
        self._demand(Action.WRITE, node)
        self._demand_name(Action.WRITE, parent, name)
        return self._working.link(NodeId(node), NodeId(parent), name)

    @guarded
    def unlink(self, parent: int, name: bytes, *, condition: Condition | None = None) -> None:
        """Remove a name of anything but a directory."""
        self.lookup(parent, name)
        self._demand_name(Action.DELETE, parent, name)
        self._working.unlink(NodeId(parent), name, condition=self._for_caller(parent, name, condition))

    @guarded
    def rmdir(self, parent: int, name: bytes) -> None:
        """Remove an empty directory. One that holds only what the caller cannot see is not empty, and says no more than that it may not."""
        self.lookup(parent, name)
        self._demand_name(Action.DELETE, parent, name)
        self._working.rmdir(NodeId(parent), name)

    @guarded
    def rename(self, parent: int, name: bytes, target: int, target_name: bytes, *, replace: bool = True, exchange: bool = False) -> None:
        """Move, replace or swap names, as POSIX and Linux do it."""
        moved = self.lookup(parent, name)
        source, destination = join_path(self._path_of(parent), name), join_path(self._path_of(target), target_name)
        self._demand_path(Action.WRITE, source)
        self._demand_path(Action.WRITE, destination)
        if stat.S_ISDIR(moved.st_mode):
            self._demand_subtree(source, destination)
        elif replace and not exchange:
            self._keep_replaced(target, target_name, destination)
        self._carry_label(parent, name, source)
        if exchange:
            self._carry_label(target, target_name, destination)
        self._working.rename(NodeId(parent), name, NodeId(target), target_name, replace=replace, exchange=exchange)

    @guarded
    def set_attributes(self, node: int, change: AttributeChange) -> Attributes:
        """Change attributes and return the result."""
        self._demand(Action.WRITE, node)
        wanted = stored.AttributeChange(change.mode, change.size, change.mtime_ns, change.atime_ns, change.uid, change.gid)
        return self._working.set_attributes(NodeId(node), wanted)

    @guarded
    def set_xattr(self, node: int, name: bytes, value: bytes | None) -> None:
        """Set or (None) remove a ``user.*`` attribute. What shows a label is not set: setting it to what it is does nothing."""
        if name.startswith(LABEL_XATTRS):
            if value is not None and self.xattrs(node).get(name) == value:
                return
            raise Fault(
                Kind.NOT_PERMITTED, "labels are not set through attributes", hint="nas label mark raises one, nas label endorse lowers one"
            )
        self._demand(Action.WRITE, node)
        self._meter.spend(BudgetKind.BYTES_WRITTEN, len(value or b""))
        self._working.set_xattr(NodeId(node), name, value)

    # -- the whole ------------------------------------------------------------------------------------------------

    @guarded
    def space(self) -> Space:
        """Return the room left under disk and budget."""
        space = self._working.space()
        left = self._meter.left(BudgetKind.BYTES_WRITTEN)
        return space if left is None else stored.Space(space.total, min(space.free, left), space.files)

    @guarded
    def sync(self) -> None:
        """Return once every write that returned is on stable storage."""
        self._working.sync()

    @guarded
    def version(self) -> int:
        """Return a number that grows with every change of the tree, by any door."""
        return self._working.version()

    @guarded
    def touched(self, since: int) -> Sequence[Touch] | None:
        """Return what changed after `since`; None: everything may have."""
        return self._working.touched(Version(since))

    @guarded
    def check(self) -> None:
        """Raise `Kind.EXPIRED` or `Kind.REVOKED` once the authority behind this workspace has ended."""
        self._authority.check()

    @guarded
    def require_writable(self, parent: int, name: bytes) -> None:
        """Return when a write under a name would be allowed, and change nothing."""
        self._demand_name(Action.WRITE, parent, name)

    @guarded
    def commit(self, message: str) -> Document:
        """Commit what changed."""
        return self._commit(message)

    @guarded
    def flush(self, *, everything: bool = False) -> None:
        """Write what was counted (reads, denials, budgets) to trust; `everything` also what still gathers."""
        self._replaced.expire()
        if batch := self._reads.take():
            self._note_reads(batch)
        self._authority.flush(everything=everything)
        self._meter.settle()

    def close(self) -> None:
        """Flush what was counted and release everything."""
        self.flush(everything=True)
        self._replaced.close()
        self._working.close()

    @contextmanager
    def _spending(self, size: int) -> Iterator[None]:
        """Account written bytes before the block stores them; they come back when it fails."""
        self._meter.spend(BudgetKind.BYTES_WRITTEN, size)
        try:
            yield
        except (Fault, StoreError, OSError):
            self._meter.give_back(BudgetKind.BYTES_WRITTEN, size)
            raise
