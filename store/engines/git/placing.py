"""Whole files that get a name at once, copies of files, and bytes that wait for a name.

1. A small content is a draft: it is a row of the transaction that makes the name stand for it. Any other is an upper file, complete and
   on stable storage before that transaction; a death before it leaves a file that no row names, which housekeeping removes.
2. A condition is asked within that transaction. What stands there and has an upper file can be written without one, so then it is asked
   alone in the fence: no write through an open handle falls between answer and change.
3. A copy of what a blob holds shares the blob and costs a row. Any other is made by the kernel, and made again with nobody writing
   when the file changed meanwhile.
4. Staged bytes are upper files that a row of their own names. Their id is a secret: who knows it may read and remove them.
"""

from __future__ import annotations

import os
import secrets
from binascii import hexlify
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from store.contract import Attach, Condition, Content, Joined, Staged
from store.engines.git import drafts
from store.engines.git.committed import CommittedHandle
from store.engines.git.content import copy_content
from store.engines.git.edits import Edit
from store.engines.git.layer import Layer
from store.engines.git.nodes import CLEAN, NodeRow, describe_node, fresh_row, identify_content, stamp_content
from store.engines.git.objects import Kind, object_id
from store.engines.git.reading import as_directory, as_file
from store.engines.git.xattrs import change_xattrs, check_xattr
from store.errors import InvalidName, IsADirectory, NotFound, Stale
from store.model import Attributes, EntryKind, NodeId
from store.names import explain_name

T = TypeVar("T")

_STAGE = "INSERT INTO staged VALUES (?, ?, ?, ?, ?)"
_FIND = "SELECT upper FROM staged WHERE id = ? AND branch = ?"
_UNSTAGE = "DELETE FROM staged WHERE id = ? AND branch = ? RETURNING upper"
_ID_BYTES = 12
_NANOSECONDS = 1_000_000_000
_NO_CONTENT = fresh_row(NodeId(0), EntryKind.FILE, 0, 0)


@dataclass(frozen=True, slots=True)
class Making:
    """A file about to get a name: a row without an identity that has its content, and what its attributes become."""

    row: NodeRow
    content: bytes
    is_copy: bool = False
    draft: bytes | None = None


class Placing:
    """What puts whole files into one layer."""

    def __init__(self, layer: Layer) -> None:
        """Work on `layer`."""
        self._layer = layer
        self._uppers = layer.uppers

    def place(
        self, parent: NodeId, name: bytes, mode: int, content: Content, condition: Condition | None, attach: Attach | None
    ) -> Attributes:
        """Make `name` stand for a file with all of `content` and return its attributes. Raises `IsADirectory`, `InvalidName`, `NoSpace`."""
        check_name(name)
        making = self._received(_NO_CONTENT._replace(mode=mode & 0o7777), content)
        return self._finish(parent, name, making, condition, attach)

    def copy(self, node: NodeId, parent: NodeId, name: bytes, condition: Condition | None, attach: Attach | None) -> Attributes:
        """Make `name` stand for a copy of a file and return its attributes. Raises as `place`, and `NotPermitted` for what is no file."""
        check_name(name)
        making = self._copied(node)
        while True:
            try:
                return self._finish(parent, name, making, condition, attach)
            except _SharedMovedError:
                making = self._copied(node)

    def stage(self, content: Content) -> Staged:
        """Keep bytes under no name. Raises `NoSpace`, `NotFound` when the branch is gone."""
        layer, id, number = self._layer, secrets.token_hex(_ID_BYTES), self._uppers.receive(content)
        try:
            size = self._uppers.stat(number).st_size
            with layer.around.database.transaction() as connection:
                layer.catch_up(connection)
                connection.execute(_STAGE, (id, layer.branch, number, size, layer.around.clock() // _NANOSECONDS))
        except BaseException:
            self._uppers.remove(number)
            raise
        layer.around.database.flush()
        return Staged(id, size)

    def staged(self, id: str) -> CommittedHandle:
        """Open staged bytes. Raises `NotFound`."""
        found = self._layer.around.database.select_one(_FIND, (id, self._layer.branch))
        try:
            if found is not None:
                return CommittedHandle(NodeId(0), self._uppers.open(found[0], os.O_RDONLY))
        except FileNotFoundError:
            pass  # they went between the look and the opening
        raise NotFound(id, "nothing is staged under this id")

    def unstage(self, id: str) -> None:
        """Let staged bytes go. Repeats do nothing."""
        with self._layer.around.database.transaction() as connection:
            found: list[Any] = connection.execute(_UNSTAGE, (id, self._layer.branch)).fetchall()
        for (number,) in found:
            self._uppers.remove(number)

    def _finish(self, parent: NodeId, name: bytes, making: Making, condition: Condition | None, attach: Attach | None) -> Attributes:
        """Give a content that is on stable storage its name; what raises takes the content away."""
        try:
            attached = attach(making.content) if attach is not None else {}
            for key, value in attached.items():
                check_xattr(key, value)
            made = self._stand(parent, name, making, condition, attached)
        except BaseException:
            number = making.row.upper
            if number is not None:
                self._uppers.remove(number)
            raise
        self._layer.around.database.flush()
        return made

    def _stand(
        self, parent: NodeId, name: bytes, making: Making, condition: Condition | None, attached: Mapping[bytes, bytes | None]
    ) -> Attributes:
        """Make `name` stand for a file instead of the file or symlink that is there, and return what was made, whatever comes next."""
        layer = self._layer

        def stand(edit: Edit, standing: NodeRow | None) -> Attributes:
            row = self._row(edit, making, standing)
            if standing is not None:
                remove_name(edit, parent, name, standing)
            if making.draft is not None and row.lower is not None:
                edit.drafts.append((row.lower, making.draft))
            edit.put(row._replace(xattrs=change_xattrs(row.xattrs, attached)))
            edit.attach(parent, name, row.id)
            return describe_node(row, row.size or 0, 1)

        return change_judged(layer, parent, name, condition, stand)

    def _row(self, edit: Edit, making: Making, standing: NodeRow | None) -> NodeRow:
        """Return the row of a file that is about to stand where another one may stand."""
        made = making.row
        if making.is_copy and made.upper is None and not (_is_shared(now := edit.find(made.id)) and now.lower == made.lower):
            raise _SharedMovedError(made.id, "it changed meanwhile")
        row = fresh_row(self._layer.fresh_id(), EntryKind.FILE, made.mode, edit.now)._replace(
            lower=made.lower, size=made.size, upper=made.upper, xattrs=made.xattrs, content=made.content, stamped_ns=made.stamped_ns
        )
        if made.upper is not None:
            row = row._replace(mtime_ns=made.mtime_ns)
        if standing is None or not standing.is_file:
            return row
        kept = row._replace(mode=standing.mode, uid=standing.uid, gid=standing.gid)
        return kept if making.is_copy else kept._replace(xattrs=standing.xattrs)

    def _received(self, row: NodeRow, content: Content) -> Making:
        """Return a content that is to be a file's: small enough to be a draft, or on stable storage."""
        beginning = b"" if isinstance(content, Joined) else drafts.read_beginning(content)
        if not isinstance(content, Joined) and drafts.fits(beginning):
            oid = object_id(Kind.BLOB, beginning)
            return Making(row._replace(lower=oid, size=len(beginning)), hexlify(oid), draft=beginning)
        written = self._written(row, self._uppers.receive(content, beginning))
        return Making(written, written.content or b"")

    def _copied(self, node: NodeId) -> Making:
        """Return the content of a file as it was at one moment, shared or copied and on stable storage. Raises `Stale`."""
        with self._layer.reading():
            row = as_file(self._layer.find(node))
            seen = self._layer.describe(row)
        if _is_shared(row):
            return Making(row._replace(upper=None, size=seen.size), seen.content, is_copy=True)
        copied = self._written(row, self._duplicate(row))
        return Making(copied, copied.content or b"", is_copy=True)

    def _duplicate(self, row: NodeRow) -> int:
        """Return a further upper file with the content of a node's, on stable storage."""
        file = self._layer.open_file(row)
        try:
            number, target = self._uppers.create()
            try:
                before = _sign(file.current())
                copy_content(file.descriptor, target, before[0])
                if _sign(file.current()) != before:
                    with self._layer.fence.alone():
                        os.ftruncate(target, 0)
                        copy_content(file.current(), target, _sign(file.descriptor)[0])
                self._uppers.sync_files([number])
            except BaseException:
                self._uppers.remove(number)
                raise
            finally:
                os.close(target)
        finally:
            self._layer.close_file(file)
        return number

    def _written(self, row: NodeRow, number: int) -> NodeRow:
        """Return a row with an upper file nobody writes to, what identifies it included."""
        found, row = self._uppers.stat(number), row._replace(upper=number, lower=None, content=None)
        return stamp_content(row._replace(size=found.st_size, mtime_ns=found.st_mtime_ns), identify_content(row, found), found)


class _SharedMovedError(Stale):
    """The file whose blob a copy was about to share has another one now."""


class _WritableError(Stale):
    """What stands there can be written while it is looked at."""


def change_judged(layer: Layer, parent: NodeId, name: bytes, condition: Condition | None, change: Callable[[Edit, NodeRow | None], T]) -> T:
    """Make a change to a name in one transaction, when the condition agrees with what stands there, and return what `change` does.

    `change` gets the row of anything but a directory, None for none. Raises `IsADirectory`, and what `condition` and `change` raise.
    """
    try:
        with layer.fence.shared(), layer.changing() as edit:
            return change(edit, _judge(layer, edit, parent, name, condition, alone=False))
    except _WritableError:
        with layer.fence.alone(), layer.changing() as edit:
            return change(edit, _judge(layer, edit, parent, name, condition, alone=True))


def _judge(layer: Layer, edit: Edit, parent: NodeId, name: bytes, condition: Condition | None, *, alone: bool) -> NodeRow | None:
    """Return what stands under a name when the condition agrees; asks nothing where a write could come in between (rule 2)."""
    standing = edit.child(as_directory(edit.find(parent)), name)
    if standing is not None and standing.is_directory:
        raise IsADirectory(name, "a directory is there")
    if condition is not None:
        if standing is not None and standing.upper is not None and not alone:
            raise _WritableError(name, "it can be written in place")
        condition(None if standing is None else layer.describe(standing))
    return standing


def remove_name(edit: Edit, parent: NodeId, name: bytes, row: NodeRow) -> None:
    """Take a name from its node, and the node away with its last name."""
    edit.touch(row.id)
    edit.detach(parent, name, row.id)
    edit.release(row.id)


def check_name(name: bytes) -> None:
    """Raise `InvalidName` for what no file can be called."""
    why = explain_name(name)
    if why is not None:
        raise InvalidName(name, why)


def _is_shared(row: NodeRow) -> bool:
    """Tell whether the content of a file is the blob below, so that a copy can have it by name."""
    return row.lower is not None and (row.upper is None or row.dirty == CLEAN)


def _sign(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_size, found.st_ctime_ns
