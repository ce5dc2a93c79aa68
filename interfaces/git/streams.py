"""Bytes that arrive in pieces, read in the portions that a protocol needs. For the event loop.

1. Memory holds one piece and what is asked for, never more.
2. A body that is compressed is inflated piece by piece; what comes out is counted, so a small body that grows without end is refused.
3. An end in the middle of what is needed is a fault, never a short answer.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable

from interfaces.faults import Fault, Kind
from interfaces.git.pktline import HEAD, Mark, Packet, read_head

NextPiece = Callable[[], Awaitable[bytes]]
"""Waits for the next piece; nothing at the end."""

_INFLATED = 1 << 18


class Stream:
    """A stream of bytes."""

    def __init__(self, next_piece: NextPiece) -> None:
        """Read from `next_piece`."""
        self._next_piece = next_piece
        self._held = b""

    async def read_some(self) -> bytes:
        """Return what is here or comes next; nothing at the end."""
        held, self._held = self._held, b""
        return held or await self._next_piece()

    async def read_exactly(self, size: int) -> bytes:
        """Return `size` bytes. Raises `Kind.INVALID` when the stream ends before."""
        parts, missing = [], size
        while missing:
            piece = await self.read_some()
            if not piece:
                raise _cut_short()
            parts.append(piece[:missing])
            self._held = piece[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    async def at_end(self) -> bool:
        """Tell whether nothing follows, waiting for what does."""
        self._held = await self.read_some()
        return not self._held

    async def read_packet(self) -> Packet:
        """Return the next packet. Raises `Kind.INVALID`."""
        head = read_head(await self.read_exactly(HEAD))
        return head if isinstance(head, Mark) else await self.read_exactly(head)

    async def read_all(self, limit: int) -> bytes:
        """Return everything. Raises `Kind.TOO_LARGE` above `limit` bytes."""
        parts, total = [], 0
        while piece := await self.read_some():
            parts.append(piece)
            total += len(piece)
            if total > limit:
                raise Fault(Kind.TOO_LARGE, f"the request has more than {limit} bytes", hint="ask for less at once")
        return b"".join(parts)


class Inflating:
    """The pieces of a gzip stream, inflated."""

    def __init__(self, next_piece: NextPiece) -> None:
        """Inflate what `next_piece` gives."""
        self._next_piece = next_piece
        self._inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._given = b""

    async def next(self) -> bytes:
        """Return the next inflated piece, nothing at the end. Raises `Kind.INVALID`."""
        while not self._inflater.eof:
            self._given = self._given or await self._next_piece()
            if not self._given:
                raise _cut_short()
            piece = self._inflate()
            if piece:
                return piece
        return b""

    def _inflate(self) -> bytes:
        try:
            piece = self._inflater.decompress(self._given, _INFLATED)
        except zlib.error as error:
            raise Fault(Kind.INVALID, f"the body is not gzip: {error}", hint="send it as it is") from error
        self._given = self._inflater.unconsumed_tail
        return piece


def _cut_short() -> Fault:
    return Fault(Kind.INVALID, "the request ends in the middle", hint="send it again")
