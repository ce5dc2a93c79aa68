"""Open files: their numbers, their handles, and where an append really goes.

1. A number stands for one open of one node until it is released; it is never used again.
2. The kernel appends at the end it believes in and tells us only the offset. It also writes pages of shared mappings
   through whichever descriptor it likes, an appending one included. A write through an appending descriptor is an append
   exactly when it starts at the believed end: then the store finds the true end, which another door may have moved.
3. Every write is handed on before it is answered; nothing is gathered here, so nothing can be lost with this process.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from interfaces.port import Access, Handle, Workspace


@dataclass(slots=True)
class OpenFile:
    """One open of one node. `appender` is there when it was opened with O_APPEND.

    `cold` until a large file was touched once, `written` once something was written through it.
    """

    node: int
    handle: Handle
    appender: Handle | None = None
    cold: bool = False
    written: bool = False

    def close(self) -> None:
        """Release the handles."""
        self.handle.close()
        if self.appender is not None:
            self.appender.close()


class Files:
    """Every open file of the mount, and the end the kernel believes in for each of their nodes."""

    def __init__(self, workspace: Workspace) -> None:
        """Start with none."""
        self._workspace = workspace
        self._numbers = count(1)
        self._open: dict[int, OpenFile] = {}
        self._opens: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def open(self, node: int, access: Access, *, append: bool) -> OpenFile:
        """Open a node; `append` adds a second handle whose writes go to the end."""
        return self.wrap(node, self._workspace.open(node, access), append=append)

    def wrap(self, node: int, handle: Handle, *, append: bool) -> OpenFile:
        """Make a file of a handle; it is closed when the second one cannot be had."""
        if not append:
            return OpenFile(node, handle)
        file = OpenFile(node, handle)
        try:
            file.appender = self._workspace.open(node, Access(read=False, write=True, append=True))
        finally:
            if file.appender is None:
                handle.close()
        return file

    def add(self, file: OpenFile, size: int) -> int:
        """Give an open file its number; `size` is the end of the file as the kernel knows it."""
        number = next(self._numbers)
        self._open[number] = file
        self._opens[file.node] = self._opens.get(file.node, 0) + 1
        self._ends.setdefault(file.node, size)
        return number

    def __getitem__(self, number: int) -> OpenFile:
        return self._open[number]

    def note_size(self, node: int, size: int) -> None:
        """Note what end the kernel was just told for a node."""
        if node in self._ends:
            self._ends[node] = size

    def write(self, number: int, offset: int, data: bytes) -> int:
        """Write and return how much."""
        file = self._open[number]
        appends = file.appender is not None and offset == self._ends[file.node]
        written = (file.appender if appends and file.appender else file.handle).write(offset, data)
        file.cold, file.written = False, True
        self._ends[file.node] = max(self._ends[file.node], offset + written)
        return written

    def release(self, number: int) -> OpenFile:
        """Take a number out of use and return its file, still to be closed."""
        file = self._open.pop(number)
        self._opens[file.node] -= 1
        if not self._opens[file.node]:
            del self._opens[file.node], self._ends[file.node]
        return file

    def close(self) -> None:
        """Close every file that is still open."""
        for number in list(self._open):
            self.release(number).close()
