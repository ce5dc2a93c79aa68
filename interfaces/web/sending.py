"""Having the kernel send parts of files on one connection, beside what its transport sends.

1. What the transport still holds goes first: bytes of a file are never sent before bytes that were written earlier.
2. A client that takes nothing for a while is cut off; the connection's end wakes who waits for it.
3. The event loop owns the connection's descriptor and watches no descriptor twice, so a copy of it is watched and written to.
4. Descriptors of files are the port's: they are lent for the length of one call and closed by whom they belong to.
5. Everything but `bring_in` runs on the event loop only.
"""

from __future__ import annotations

import asyncio
import os

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import Disconnected, Extent

_PAUSE = 0.001
_SAMPLE = 128 << 10


class ExtentSender:
    """Sends extents on one connection."""

    def __init__(self, transport: asyncio.Transport, idle_seconds: float) -> None:
        """Send on `transport`; a client may take nothing for `idle_seconds`."""
        self._transport = transport
        self._idle = idle_seconds
        self._loop = asyncio.get_running_loop()
        self._copy: int | None = None

    async def send(self, extent: Extent) -> None:
        """Return once an extent is with the kernel. Raises `Disconnected`, `Kind.CONFLICT` when the file is shorter."""
        try:
            async with asyncio.timeout(self._idle) as patience:
                while self._transport.get_write_buffer_size() and not self._transport.is_closing():
                    await asyncio.sleep(_PAUSE)
                await self._send(extent, patience)
        except TimeoutError:
            self._transport.abort()
            raise Disconnected from None
        except (BrokenPipeError, ConnectionResetError):
            raise Disconnected from None

    def close(self) -> None:
        """Let the connection go."""
        if self._copy is not None:
            self._loop.remove_writer(self._copy)
            os.close(self._copy)
            self._copy = None

    async def _send(self, extent: Extent, patience: asyncio.Timeout) -> None:
        offset, end = extent.offset, extent.offset + extent.count
        while offset < end:
            connection = self._connection()
            try:
                sent = os.sendfile(connection, extent.descriptor, offset, end - offset)
            except BlockingIOError:
                await self._wait_writable(connection)
                patience.reschedule(self._loop.time() + self._idle)
                continue
            if sent == 0:
                raise Fault(Kind.CONFLICT, "the file shrank while it was read", hint="read it again")
            offset += sent

    def _connection(self) -> int:
        if self._transport.is_closing():
            raise Disconnected
        if self._copy is None:
            self._copy = os.dup(self._transport.get_extra_info("socket").fileno())
        return self._copy

    async def _wait_writable(self, connection: int) -> None:
        writable = self._loop.create_future()
        self._loop.add_writer(connection, _wake, writable)
        try:
            await writable
        finally:
            if self._copy is not None:
                self._loop.remove_writer(connection)


def _wake(writable: asyncio.Future[None]) -> None:
    if not writable.done():
        writable.set_result(None)


def is_in_memory(descriptor: int, start: int, end: int) -> bool:
    """Tell whether bytes of a file can be read without waiting for a disk, from a sample of their pages."""
    probe = bytearray(1)
    try:
        return all(os.preadv(descriptor, [probe], offset, os.RWF_NOWAIT) for offset in (*range(start, end, _SAMPLE), end - 1))
    except OSError:
        return False


def bring_in(descriptor: int, start: int, end: int) -> None:
    """Wait until bytes of a file are in memory, and have the system read on."""
    os.posix_fadvise(descriptor, start, 4 * (end - start), os.POSIX_FADV_WILLNEED)
    while start < end and (piece := os.pread(descriptor, min(_SAMPLE, end - start), start)):
        start += len(piece)
