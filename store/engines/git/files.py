"""Open files: one descriptor for a node, shared by all handles of this process, and the handles.

1. An untouched file is read from the cache of committed content; a small one has no descriptor until somebody wants one. The first
   write copies it up: after that the node has an upper file of its own, and readers who had it open read that one.
2. A write holds the fence of its layer, so a commit has it whole or not at all; it marks the node dirty before the first byte after
   each commit. Further writes touch no row.
3. A write that returned is in the kernel: it survives the end of this process.
4. Descriptors that were replaced stay open until the file is closed, because another thread may be reading through one.
5. Appends go through a descriptor of their own that the kernel positions, so appends of several processes never overlap.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from store.engines.git.content import check_size, copy_content, disk_errors, write_all
from store.engines.git.nodes import DIRTY, NodeRow
from store.engines.git.steps import step
from store.errors import NotPermitted, Stale
from store.model import Access, NodeId

if TYPE_CHECKING:
    from store.engines.git.layer import Layer

_EVERYTHING = 1 << 62
_NONE = -1

_Source = tuple[int | None, bytes | None]
"""Where the content of a node is: its upper file, or the blob below."""


_RESTED = 1_000_000_000
"""Nanoseconds: coarser than any clock that stamps files."""


class OpenFile:
    """The content of one node while somebody has it open."""

    def __init__(self, layer: Layer, row: NodeRow) -> None:
        """Open what the row says; the caller holds the layer's lock."""
        self.node = row.id
        self.row = row
        self.users = 0
        self.upper: int | None = None
        self._layer = layer
        self._lock = threading.Lock()
        self._retired: list[int] = []
        self._appender: int | None = None
        self.descriptor = _NONE
        self._source: _Source = (None, None)
        self._content: bytes | None = None
        self._point_at(row)

    def current(self) -> int:
        """Return a descriptor that reads the content as it is now."""
        with self._layer.reading():
            self._follow()
            if self.descriptor == _NONE:
                self.descriptor = self._open(self.row)
            return self.descriptor

    def keep(self, row: NodeRow) -> None:
        """Hold on to the content of a row that is about to go; what another process removed already cannot be held."""
        if _source_of(row) != self._source:
            with suppress(Stale):
                self._point_at(row)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        with self._layer.reading():
            self._follow()
            content, descriptor = self._content, self.descriptor
        if content is not None:
            return content[offset : offset + size]
        with disk_errors(self.node):
            data = os.pread(descriptor, size, offset)
            while 0 < len(data) < size and (more := os.pread(descriptor, size - len(data), offset + len(data))):
                data += more
        return data

    def write(self, offset: int | None, data: bytes) -> None:
        """Store all of `data` at `offset`, or (None) at the end. Raises `NoSpace`, `TooLarge`."""
        check_size(self.node, (offset or 0) + len(data))
        with self._layer.fence.shared():
            descriptor = self._writable()
            view = memoryview(data)
            with disk_errors(self.node):
                if offset is None:
                    descriptor = self._appending()
                while view:
                    done = os.write(descriptor, view) if offset is None else os.pwrite(descriptor, view, offset)
                    offset = None if offset is None else offset + done
                    view = view[done:]

    def resize(self, size: int) -> None:
        """Cut the content off at `size` or extend it with zeros. Raises `NoSpace`, `TooLarge`."""
        check_size(self.node, size)
        with self._layer.fence.shared():
            descriptor = self._writable(keep=size)
            with disk_errors(self.node):
                os.ftruncate(descriptor, size)

    def record(self) -> None:
        """Write down how long the content is and when it changed, so that whoever asks what was touched learns of it."""
        with self._layer.fence.shared(), self._layer.lock:
            self.current()
            if self._layer.is_orphan(self.node) or self.upper is None or self._is_recorded():
                return
            with self._layer.changing() as edit:
                found = os.fstat(self.descriptor)
                row = edit.touch(self.node)
                edit.put(row._replace(size=found.st_size, mtime_ns=found.st_mtime_ns, ctime_ns=max(row.ctime_ns, found.st_ctime_ns)))

    def _is_recorded(self) -> bool:
        """Tell whether the row says what the file says. A time of the last second is not believed: a write may have left it as it was."""
        found, row = os.fstat(self.descriptor), self._layer.find(self.node)
        rested = found.st_mtime_ns < self._layer.around.clock() - _RESTED
        return rested and (found.st_size, found.st_mtime_ns) == (row.size, row.mtime_ns)

    def sync(self) -> None:
        """Return once the content and the name are on stable storage."""
        with self._layer.reading():
            self._follow()
        if self.upper is not None:
            step("upper: sync")
            with disk_errors(self.node):
                self._layer.around.sync(self.descriptor)
            self._layer.uppers.sync()
        self._layer.around.database.flush()

    def release(self) -> None:
        """Close every descriptor."""
        if self._appender is not None:
            self._retired.append(self._appender)
        for descriptor in (self.descriptor, *self._retired):
            if descriptor != _NONE:
                os.close(descriptor)

    def _follow(self) -> None:
        """Read from what the row says now; a node without a name keeps what it had. The caller reads the layer."""
        row = self._layer.find(self.node)
        if _source_of(row) != self._source and not self._layer.is_orphan(self.node):
            self._point_at(row)
        self.row = row

    def _point_at(self, row: NodeRow) -> None:
        """Read from what a row says: from memory when it is small and committed, else from a descriptor."""
        below = row.lower if row.upper is None else None
        content = None if below is None else self._layer.around.cache.small(below)
        self._turn_to(row, self._open(row) if content is None else _NONE, content)

    def _turn_to(self, row: NodeRow, descriptor: int, content: bytes | None = None) -> None:
        self._retired.append(self.descriptor)
        if self._appender is not None:
            self._retired.append(self._appender)
            self._appender = None
        self.descriptor, self._content = descriptor, content
        self.upper, self._source = row.upper, _source_of(row)

    def _open(self, row: NodeRow) -> int:
        if row.upper is not None:
            try:
                return self._layer.uppers.open(row.upper)
            except FileNotFoundError:
                raise Stale(row.id, "it was removed meanwhile") from None
        if row.lower is None:
            raise NotPermitted(row.id, "it has no content")
        return self._layer.around.cache.open(row.lower)

    def _writable(self, keep: int = _EVERYTHING) -> int:
        """Return a descriptor that may be written now, the node marked; of content to copy up, `keep` bytes are enough."""
        with self._lock:
            with self._layer.reading():
                self._follow()
            if self.upper is None:
                self._copy_up(keep)
            elif self.row.dirty != DIRTY and not self._layer.is_orphan(self.node):
                with self._layer.changing() as edit:
                    self.row = edit.alter(self.node, dirty=DIRTY)
            return self.descriptor

    def _copy_up(self, keep: int) -> None:
        layer = self._layer
        number, descriptor = layer.uppers.create()
        if self._content is not None:
            write_all(descriptor, self._content[:keep])
        else:
            copy_content(self.descriptor, descriptor, min(os.fstat(self.descriptor).st_size, keep))
        os.utime(descriptor, ns=(self.row.atime_ns, self.row.mtime_ns))
        with layer.lock:
            layer.refresh()
            layer.find(self.node)
            if layer.is_orphan(self.node):
                layer.uppers.remove(number)
                layer.put_orphan(layer.find(self.node)._replace(upper=number))
            elif not self._claim(number):
                layer.uppers.remove(number)
                os.close(descriptor)
                self._follow()
                return
            self._turn_to(self.row._replace(upper=number), descriptor)

    def _claim(self, number: int) -> bool:
        """Make an upper file the node's, unless another process was first."""
        with self._layer.changing() as edit:
            if edit.touch(self.node).upper is not None:
                edit.nodes.clear()
                edit.names.clear()
                return False
            self.row = edit.alter(self.node, upper=number, dirty=DIRTY)
            return True

    def _appending(self) -> int:
        with self._lock:
            if self._appender is None:
                self._appender = os.open(f"/proc/self/fd/{self.descriptor}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            return self._appender


def _source_of(row: NodeRow) -> _Source:
    return row.upper, row.lower if row.upper is None else None


class FileHandle:
    """An open file of a working layer, as one caller sees it."""

    def __init__(self, layer: Layer, file: OpenFile, access: Access) -> None:
        """Take over one use of an open file."""
        self.node: NodeId = file.node
        self._layer = layer
        self._file = file
        self._access = access
        self._written = False
        self._closed = False

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`. Raises `NotPermitted` when not opened for reading."""
        if not self._access.read:
            raise NotPermitted(self.node, "not opened for reading")
        return self._file.read(offset, size)

    def write(self, offset: int, data: bytes) -> int:
        """Store `data` and return its length. Raises `NoSpace`, `NotPermitted`."""
        if not self._access.write:
            raise NotPermitted(self.node, "not opened for writing")
        if data:
            self._file.write(None if self._access.append else offset, data)
            self._written = True
        return len(data)

    def sync(self) -> None:
        """Return once content, size and name are on stable storage."""
        self._record()
        self._file.sync()

    def close(self) -> None:
        """Release the file. Repeats do nothing."""
        if not self._closed:
            self._closed = True
            try:
                self._record()
            finally:
                self._layer.close_file(self._file)

    def fileno(self) -> int:
        """Return a descriptor that reads the file now; the handle owns it."""
        return self._file.current()

    def _record(self) -> None:
        if self._written:
            self._written = False
            self._file.record()
