"""Sending files: parts of an open handle, with constant memory.

1. A short part of a file is one read and one body. A long one goes out in pieces of `PIECE` bytes, one of them in memory.
2. Every piece is read through the handle, or lent by it, so each is still checked against a lease that may have ended meanwhile.
   What the handle lends is sent by the kernel, once it is in memory: nobody waits for a disk on the event loop.
3. A file that shrinks while it is sent breaks the connection: a client never takes half a file for a file.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from interfaces.faults import Fault, Kind
from interfaces.port import Handle
from interfaces.web.asgi import Extent, Request
from interfaces.web.pool import Pool
from interfaces.web.sending import bring_in, is_in_memory

PIECE = 512 << 10
"""Bytes of a long file in memory at once."""

SHORT = 64 << 10
"""Up to how many bytes are read on the event loop: a turn of the pool would cost more than the read."""


def read_exactly(handle: Handle, offset: int, size: int) -> bytes:
    """Return `size` bytes at `offset`. Raises `Kind.CONFLICT` when the file has become shorter."""
    content = handle.read(offset, size)
    if len(content) == size:
        return content
    joined = bytearray(content)
    while len(joined) < size:
        piece = handle.read(offset + len(joined), size - len(joined))
        if not piece:
            raise Fault(Kind.CONFLICT, "the file shrank while it was read", hint="read it again")
        joined += piece
    return bytes(joined)


async def read_part(handle: Handle, start: int, end: int, pool: Pool) -> bytes:
    """Return the bytes from `start` to `end`, at most one `PIECE` of them. Raises as `read_exactly`."""
    if end - start <= SHORT:
        return read_exactly(handle, start, end - start)
    return await pool.run(read_exactly, handle, start, end - start)


async def pieces(handle: Handle, start: int, end: int, pool: Pool) -> AsyncGenerator[bytes, None]:
    """Yield the bytes from `start` to `end`. Raises as `read_exactly`."""
    while start < end:
        stop = min(start + PIECE, end)
        yield await read_part(handle, start, stop, pool)
        start = stop


async def extents(handle: Handle, start: int, end: int, pool: Pool, request: Request) -> AsyncGenerator[bytes | Extent, None]:
    """Yield the bytes from `start` to `end` as extents where the server and the handle can, else as pieces. Raises as `read_exactly`.

    The reply that has them announces its length.
    """
    while start < end:
        stop = min(start + PIECE, end)
        descriptor = handle.lend(start, stop - start) if request.sends_extents else None
        if descriptor is None:
            yield await read_part(handle, start, stop, pool)
        else:
            if not is_in_memory(descriptor, start, stop):
                await pool.run(bring_in, descriptor, start, stop)
            yield Extent(descriptor, start, stop - start)
        start = stop


class HandleContent:
    """A part of an open file as the content of another. The handle stays the caller's to close."""

    def __init__(self, handle: Handle, start: int = 0, end: int | None = None) -> None:
        """Read from `start` up to `end` (None: the end of the file)."""
        self._handle = handle
        self._offset = start
        self._end = end

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`; nothing at the end."""
        if self._end is not None:
            size = min(size, self._end - self._offset)
        piece = self._handle.read(self._offset, size) if size > 0 else b""
        self._offset += len(piece)
        return piece
