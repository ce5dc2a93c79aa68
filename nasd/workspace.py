"""Where a request for a file meets trust and store: one authority's view of one branch.

1. Every method decides first, then accounts, then acts; nothing touches the store on another way.
2. What the authority cannot see is `Kind.NOT_FOUND` and missing from listings; a directory on the way to something visible is visible.
3. What it can see and may not do is `Kind.DENIED` (`Kind.READ_ONLY` on a protected branch, `Kind.BUDGET` when spent).
4. A rename needs the right to write both names; for a directory also everything that could be below both.
5. A file that was opened and then lost its last name stays usable through what opened it, as POSIX wants. One that a rename
   replaced can still be opened for a moment, under the rights of the path it had: who looks a name up before an
   atomic save and opens it after gets the former file, not an error.
6. Any thread may call; every error of the contexts leaves as a `Fault`.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Access, AttributeChange, Attributes, Content, Document, Handle, Space, Touch
from nasd.authority import Authority
from nasd.faults import guarded
from nasd.meter import Meter
from nasd.open_files import CheckedHandle, MeteredContent, OpenNodes, Replaced
from nasd.paths import render_path
from nasd.reads import Reads
from store import model as stored
from store.contract import Working
from store.errors import NotFound, Stale
from store.model import EntryKind, NodeId, Version
from trust.model import Action, BudgetKind

_SPECIAL = {stat.S_IFREG: EntryKind.FILE, stat.S_IFIFO: EntryKind.FIFO, stat.S_IFSOCK: EntryKind.SOCKET}


class BranchWorkspace:
    """The `Workspace` port over a working layer."""

    def __init__(
        self,
        branch: str,
        working: Working,
        authority: Authority,
        meter: Meter,
        *,
        commit: Callable[[str], Document],
        note_reads: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Serve `working` under `authority`; `commit` makes a commit with a message, `note_reads` keeps a batch of the read manifest."""
        self.branch = branch
        self._working = working
        self._authority = authority
        self._meter = meter
        self._reads = Reads()
        self._commit = commit
        self._note_reads = note_reads
        self._open = OpenNodes()
        self._replaced = Replaced(time.monotonic)

    # -- seeing ---------------------------------------------------------------------------------------------------

    @guarded
    def lookup(self, parent: int, name: bytes) -> Attributes:
        """Return what a name stands for."""
        directory = self._working.path(NodeId(parent))
        try:
            attributes = self._working.lookup(NodeId(parent), name)
        except NotFound:
            raise _absent(directory, name) from None
        if not self._authority.sees(directory, name, is_directory=attributes.kind is EntryKind.DIRECTORY):
            raise _absent(directory, name)
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
            raise _absent(directory, None)
        entries = self._working.list(NodeId(node))
        if self._authority.sees_all(directory):
            return entries
        sees = self._authority.sees
        return [entry for entry in entries if sees(directory, entry[0], is_directory=entry[1].kind is EntryKind.DIRECTORY)]

    @guarded
    def readlink(self, node: int) -> bytes:
        """Return the target of a symlink."""
        self._demand(Action.READ, node)
        return self._working.readlink(NodeId(node))

    @guarded
    def xattrs(self, node: int) -> Mapping[bytes, bytes]:
        """Return the ``user.*`` attributes."""
        self._require_visible(node, self._working.attributes(NodeId(node)))
        return self._working.xattrs(NodeId(node))

    @guarded
    def path(self, node: int) -> bytes:
        """Return one path of the node."""
        return self._working.path(NodeId(node))

    # -- files ----------------------------------------------------------------------------------------------------

    @guarded
    def open(self, node: int, access: Access) -> Handle:
        """Open a file."""
        path = self._path_of(node)
        if access.read:
            self._demand_path(Action.READ, path)
            self._meter.spend(BudgetKind.READS, 1)
            self._reads.add(path)
        if access.write or access.truncate:
            self._demand_path(Action.WRITE, path)
        wanted = stored.Access(access.read, access.write, access.append, access.truncate)
        return CheckedHandle(self._working.open(NodeId(node), wanted), self._authority, self._meter, self._open)

    @guarded
    def create(self, parent: int, name: bytes, mode: int) -> tuple[Attributes, Handle]:
        """Make an empty file and open it for reading and writing."""
        self._demand_name(Action.WRITE, parent, name)
        attributes = self._working.create(NodeId(parent), name, mode)
        handle = self._working.open(attributes.node, stored.Access(read=True, write=True))
        return attributes, CheckedHandle(handle, self._authority, self._meter, self._open)

    @guarded
    def publish(self, parent: int, name: bytes, mode: int, content: Content) -> Attributes:
        """Put a whole file under a name, at once, and return when it is on stable storage."""
        self._demand_name(Action.WRITE, parent, name)
        return self._working.place(NodeId(parent), name, mode, MeteredContent(content, self._meter))

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
        self._demand(Action.READ, node)
        self._demand(Action.WRITE, node)
        self._demand_name(Action.WRITE, parent, name)
        return self._working.link(NodeId(node), NodeId(parent), name)

    @guarded
    def unlink(self, parent: int, name: bytes) -> None:
        """Remove a name of anything but a directory."""
        self.lookup(parent, name)
        self._demand_name(Action.DELETE, parent, name)
        self._working.unlink(NodeId(parent), name)

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
        source, destination = _join(self._path_of(parent), name), _join(self._path_of(target), target_name)
        self._demand_path(Action.WRITE, source)
        self._demand_path(Action.WRITE, destination)
        if stat.S_ISDIR(moved.st_mode):
            self._demand_subtree(source, destination)
        elif replace and not exchange:
            self._keep_replaced(target, target_name, destination)
        self._working.rename(NodeId(parent), name, NodeId(target), target_name, replace=replace, exchange=exchange)

    @guarded
    def set_attributes(self, node: int, change: AttributeChange) -> Attributes:
        """Change attributes and return the result."""
        self._demand(Action.WRITE, node)
        wanted = stored.AttributeChange(change.mode, change.size, change.mtime_ns, change.atime_ns, change.uid, change.gid)
        return self._working.set_attributes(NodeId(node), wanted)

    @guarded
    def set_xattr(self, node: int, name: bytes, value: bytes | None) -> None:
        """Set or (None) remove a ``user.*`` attribute."""
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

    # -- deciding -------------------------------------------------------------------------------------------------

    def _keep_replaced(self, target: int, name: bytes, path: bytes) -> None:
        """Keep what a rename is about to replace for those who looked it up and have not opened it yet."""
        try:
            replaced = self._working.lookup(NodeId(target), name)
        except NotFound:
            return
        if replaced.kind is EntryKind.FILE:
            self._replaced.keep(path, self._working.open(replaced.node))

    def _path_of(self, node: int) -> bytes:
        try:
            return self._working.path(NodeId(node))
        except Stale:
            if (former := self._replaced.path(node)) is not None:
                return former
            raise Fault(Kind.STALE, "the file has no name any more", hint="look it up again") from None

    def _require_visible(self, node: int, attributes: stored.Attributes) -> None:
        try:
            path = self._working.path(NodeId(node))
        except Stale:
            self._authority.check()
            return
        directory, _, name = path.rpartition(b"/")
        if not self._authority.sees(directory, name or None, is_directory=attributes.kind is EntryKind.DIRECTORY):
            raise _absent(directory, name)

    def _demand(self, action: Action, node: int) -> None:
        if node in self._open and self._nameless(node):
            self._authority.check()
        else:
            self._demand_path(action, self._path_of(node))

    def _nameless(self, node: int) -> bool:
        try:
            self._working.path(NodeId(node))
        except Stale:
            return True
        return False

    def _demand_path(self, action: Action, path: bytes) -> None:
        directory, _, name = path.rpartition(b"/")
        self._authority.demand(action, directory, name or None)

    def _demand_name(self, action: Action, parent: int, name: bytes) -> None:
        self._authority.demand(action, self._path_of(parent), name)

    def _demand_subtree(self, source: bytes, destination: bytes) -> None:
        """Return when moving a directory moves only what may be written, and changes nobody's rights on what is below."""
        for path in (source, destination):
            if not self._authority.covers_below(Action.WRITE, path):
                raise Fault(
                    Kind.DENIED,
                    f"move {render_path(path)}: the lease does not cover everything that can be below it",
                    hint="move the files it covers one by one, or ask for a lease over the whole directory",
                )
        if not self._authority.same_below(source, destination):
            raise Fault(
                Kind.DENIED,
                f"move {render_path(source)}: the policy treats what is below {render_path(destination)} differently",
                hint="move the files one by one: each is decided by its own path",
            )


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def _absent(directory: bytes, name: bytes | None) -> Fault:
    path = _join(directory, name) if name else directory
    return Fault(Kind.NOT_FOUND, f"{render_path(path)}: no such file or directory")
