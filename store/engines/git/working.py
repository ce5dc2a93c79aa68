"""The working layer of a branch, as callers see it: names made, moved and removed, attributes set, files opened.

1. Every method decides and changes in one transaction; it raises before anything changed, or it happened.
2. The order in which a rename is refused is fixed: parents, target name, source, loops, then what stands at the target.
3. An orphan (a node without a name that somebody has open) answers to its attributes and takes new ones until it is closed.
4. Executable means that the owner may execute; commits keep nothing else of a mode.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from store.contract import READING, Attach, Condition, Content, Staged
from store.engines.git.committed import CommittedHandle
from store.engines.git.edits import Edit
from store.engines.git.files import FileHandle
from store.engines.git.layer import Layer
from store.engines.git.nodes import DIRTY, PARKED, NodeRow, fresh_row
from store.engines.git.placing import Placing, change_judged, check_name, remove_name
from store.engines.git.reading import TreeReading, as_directory, as_file
from store.engines.git.xattrs import check_xattr, decode_xattrs, encode_xattrs
from store.errors import (
    Exists,
    IntoItself,
    IsADirectory,
    NotADirectory,
    NotEmpty,
    NotFound,
    NotPermitted,
    TooLarge,
)
from store.model import ROOT, Access, AttributeChange, Attributes, Change, EntryKind, NodeId, Space, Touched, Version

Compare = Callable[[Layer], Sequence[Change]]
"""Returns what a commit of the layer would change."""

_LONGEST_TARGET = 4095
_TOUCHED_NAMES = "SELECT parent, name, node FROM name WHERE branch = ? AND rev > ? AND ver > ?"
_TOUCHED_NODES = "SELECT id FROM node WHERE branch = ? AND rev > ? AND ver > ? AND kind > 0"


class GitWorking(TreeReading):
    """`store.contract.Working` over one layer."""

    def __init__(self, layer: Layer, compare: Compare, release: Callable[[Layer], None]) -> None:
        """Take over one use of the layer, which `release` gives back."""
        super().__init__(layer, layer.around.vault)
        self._layer = layer
        self._placing = Placing(layer)
        self._compare = compare
        self._closing = ExitStack()
        self._closing.callback(release, layer)

    def open(self, node: NodeId, access: Access = READING) -> FileHandle:
        """Open a file."""
        with self._layer.reading():
            file = self._layer.open_file(as_file(self._layer.find(node)))
        handle = FileHandle(self._layer, file, access)
        if access.truncate:
            try:
                file.resize(0)
            except BaseException:
                handle.close()
                raise
        return handle

    def create(self, parent: NodeId, name: bytes, mode: int, kind: EntryKind = EntryKind.FILE) -> Attributes:
        """Make an empty file, pipe or socket. Raises `Exists`, `InvalidName`, `NoSpace`."""
        if kind not in (EntryKind.FILE, EntryKind.FIFO, EntryKind.SOCKET):
            raise NotPermitted(name, f"a {kind.value} is made in another way")
        if kind is not EntryKind.FILE:
            return self._make(parent, name, kind, mode)
        number, descriptor = self._layer.uppers.create()
        os.close(descriptor)
        try:
            return self._make(parent, name, kind, mode, upper=number)
        except BaseException:
            self._layer.uppers.remove(number)
            raise

    def place(
        self, parent: NodeId, name: bytes, mode: int, content: Content, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Make `name` stand for a file with all of `content`, at once and durably. Raises `IsADirectory`, `InvalidName`, `NoSpace`."""
        return self._placing.place(parent, name, mode, content, condition, attach)

    def copy(
        self, node: NodeId, parent: NodeId, name: bytes, *, condition: Condition | None = None, attach: Attach | None = None
    ) -> Attributes:
        """Make `name` stand for a copy of a file, at once and durably. Raises as `place`, and `NotPermitted` for what is no file."""
        return self._placing.copy(node, parent, name, condition, attach)

    def stage(self, content: Content) -> Staged:
        """Keep bytes under no name, on stable storage. Raises `NoSpace`."""
        return self._placing.stage(content)

    def staged(self, id: str) -> CommittedHandle:
        """Open staged bytes for reading. Raises `NotFound`."""
        return self._placing.staged(id)

    def unstage(self, id: str) -> None:
        """Let staged bytes go. Repeats do nothing."""
        self._placing.unstage(id)

    def mkdir(self, parent: NodeId, name: bytes, mode: int) -> Attributes:
        """Make an empty directory. Raises `Exists`, `InvalidName`."""
        return self._make(parent, name, EntryKind.DIRECTORY, mode)

    def symlink(self, parent: NodeId, name: bytes, target: bytes) -> Attributes:
        """Make a symlink. Raises `Exists`, `InvalidName`, `TooLarge` above 4,095 bytes."""
        if len(target) > _LONGEST_TARGET:
            raise TooLarge(name, f"a symlink's target has at most {_LONGEST_TARGET} bytes")
        return self._make(parent, name, EntryKind.SYMLINK, 0o777, target=target)

    def link(self, node: NodeId, parent: NodeId, name: bytes) -> Attributes:
        """Give a file another name. Raises `Exists`, `NotPermitted` for directories."""
        with self._layer.editing() as edit:
            _check_free(edit, as_directory(edit.find(parent)), name)
            if self._layer.is_orphan(node):
                raise NotFound(node, "the file has no name any more")
            row = edit.find(node)
            if row.is_directory:
                raise NotPermitted(node, "a directory has one name")
            edit.alter(node, dirty=DIRTY if row.dirty == PARKED else row.dirty)
            edit.attach(parent, name, node)
        return self.attributes(node)

    def unlink(self, parent: NodeId, name: bytes, *, condition: Condition | None = None) -> None:
        """Remove a name of anything but a directory."""

        def remove(edit: Edit, row: NodeRow | None) -> None:
            if row is None:
                raise NotFound(name, "no such name")
            remove_name(edit, parent, name, row)

        change_judged(self._layer, parent, name, condition, remove)

    def rmdir(self, parent: NodeId, name: bytes) -> None:
        """Remove an empty directory. Raises `NotEmpty`."""
        with self._layer.editing() as edit:
            row = as_directory(_find_child(edit, parent, name))
            if self._layer.rows.has_children(row):
                raise NotEmpty(name, "the directory is not empty")
            remove_name(edit, parent, name, row)

    def rename(
        self, parent: NodeId, name: bytes, target: NodeId, target_name: bytes, *, replace: bool = True, exchange: bool = False
    ) -> None:
        """Move a name; replace what is there as POSIX says, or refuse, or swap both."""
        with self._layer.editing() as edit:
            as_directory(edit.find(parent))
            destination = as_directory(edit.find(target))
            check_name(target_name)
            moving = _find_child(edit, parent, name)
            standing = edit.child(destination, target_name)
            if exchange and standing is None:
                raise NotFound(target_name, "no such name")
            self._check_loop(edit, moving, target)
            if standing is not None and exchange:
                self._check_loop(edit, standing, parent)
            if standing is not None and standing.id == moving.id:
                return
            if standing is not None and exchange:
                edit.swap((parent, name), moving.id, (target, target_name), standing.id)
                return
            if standing is not None:
                self._check_replacing(moving, standing, target_name, replace)
                remove_name(edit, target, target_name, standing)
            edit.move((parent, name), (target, target_name), moving.id)

    def set_attributes(self, node: NodeId, change: AttributeChange) -> Attributes:
        """Change mode, owner, times or size and return the result."""
        if change.size is not None:
            self._resize(node, change.size)
        fields: dict[str, Any] = {
            name: value
            for name, value in (("uid", change.uid), ("gid", change.gid), ("mtime_ns", change.mtime_ns), ("atime_ns", change.atime_ns))
            if value is not None
        }
        if change.mode is not None:
            fields["mode"] = change.mode & 0o7777
        if fields:
            self._alter(node, fields)
        return self.attributes(node)

    def set_xattr(self, node: NodeId, name: bytes, value: bytes | None) -> None:
        """Set or (None) remove one ``user.*`` attribute. Raises `NotFound`, `NotPermitted`, `TooLarge`."""
        check_xattr(name, value)
        with self._layer.reading():
            row = self._layer.find(node)
        if not (row.is_file or row.is_directory):
            raise NotPermitted(node, "only files and directories have attributes")
        self._alter(node, {}, (name, value))

    def sync(self) -> None:
        """Return once every write that returned so far is on stable storage."""
        self._layer.sync_dirty()

    def version(self) -> Version:
        """Return a number that grows with every change to this working tree, by any process."""
        with self._layer.reading():
            return self._layer.version

    def touched(self, since: Version) -> Sequence[Touched] | None:
        """Return what changed after `since`, by any process; None when that is too long ago to tell."""
        branch = self._layer.branch
        with self._layer.around.database.snapshot() as connection:
            swept = connection.execute("SELECT swept FROM branch WHERE id = ?", (branch,)).fetchone()
            if swept is None or swept[0] > since:
                return None
            names: list[Any] = connection.execute(_TOUCHED_NAMES, (branch, since, since)).fetchall()
            nodes: list[Any] = connection.execute(_TOUCHED_NODES, (branch, since, since)).fetchall()
        return [Touched(*name) for name in names] + [Touched(None, None, *node) for node in nodes]

    def space(self) -> Space:
        """Return the room left."""
        disk = os.statvfs(self._layer.around.uppers)
        return Space(disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize, disk.f_files)

    def changes(self) -> Sequence[Change]:
        """Return the uncommitted changes against the head, renames included."""
        return self._compare(self._layer)

    def left_out(self) -> Sequence[bytes]:
        """Return the paths that commits pass over, topmost only."""
        with self._layer.reading() as rows:
            return rows.left_out()

    def close(self) -> None:
        """Release the layer. Repeats do nothing."""
        self._closing.close()

    def _make(
        self, parent: NodeId, name: bytes, kind: EntryKind, mode: int, *, upper: int | None = None, target: bytes | None = None
    ) -> Attributes:
        with self._layer.editing() as edit:
            _check_free(edit, as_directory(edit.find(parent)), name)
            row = fresh_row(self._layer.fresh_id(), kind, mode, edit.now)._replace(upper=upper, target=target)
            edit.put(row)
            edit.attach(parent, name, row.id)
        return self.attributes(row.id)

    def _alter(self, node: NodeId, fields: dict[str, Any], xattr: tuple[bytes, bytes | None] | None = None) -> None:
        layer = self._layer
        with layer.lock:
            layer.refresh()
            layer.find(node)
            if layer.is_orphan(node):
                layer.put_orphan(_with_xattr(layer.find(node), xattr)._replace(**fields, ctime_ns=layer.around.clock()))
                return
        timed = "mtime_ns" in fields or "atime_ns" in fields
        with layer.fence.alone() if timed else layer.fence.shared(), layer.changing() as edit:
            row = _with_xattr(edit.touch(node), xattr)
            if row.upper is not None:
                fields.setdefault("size", layer.uppers.stat(row.upper).st_size)  # so that closing it need not write the row again
            executable = row.is_file and bool((row.mode ^ fields.get("mode", row.mode)) & 0o100)
            altered = edit.alter(node, **fields, xattrs=row.xattrs, dirty=DIRTY if executable else row.dirty)
            if timed:
                edit.put(layer.set_times(altered))

    def _resize(self, node: NodeId, size: int) -> None:
        with self._layer.reading():
            file = self._layer.open_file(as_file(self._layer.find(node)))
        try:
            file.resize(size)
            file.record()
        finally:
            self._layer.close_file(file)

    def _check_loop(self, edit: Edit, moving: NodeRow, target: NodeId) -> None:
        if not moving.is_directory:
            return
        above = target
        while above != moving.id:
            if above == ROOT:
                return
            above = edit.places(above)[0][0]
        raise IntoItself(moving.id, "a directory cannot be moved below itself")

    def _check_replacing(self, moving: NodeRow, standing: NodeRow, name: bytes, replace: bool) -> None:
        if not replace:
            raise Exists(name, "the name is taken")
        if moving.is_directory and not standing.is_directory:
            raise NotADirectory(name, "something other than a directory is there")
        if standing.is_directory and not moving.is_directory:
            raise IsADirectory(name, "a directory is there")
        if standing.is_directory and self._layer.rows.has_children(standing):
            raise NotEmpty(name, "the directory there is not empty")


def _check_free(edit: Edit, directory: NodeRow, name: bytes) -> None:
    check_name(name)
    if edit.child(directory, name) is not None:
        raise Exists(name, "the name is taken")


def _find_child(edit: Edit, parent: NodeId, name: bytes) -> NodeRow:
    row = edit.child(as_directory(edit.find(parent)), name)
    if row is None:
        raise NotFound(name, "no such name")
    return row


def _with_xattr(row: NodeRow, xattr: tuple[bytes, bytes | None] | None) -> NodeRow:
    if xattr is None:
        return row
    name, value = xattr
    xattrs = decode_xattrs(row.xattrs)
    if value is not None:
        xattrs[name] = value
    elif xattrs.pop(name, None) is None:
        raise NotFound(name, "no such attribute")
    return row._replace(xattrs=encode_xattrs(xattrs))
