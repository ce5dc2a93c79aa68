"""The connection: uvicorn's HTTP protocol with a limit on what comes before a request means anything.

1. A request line with its headers has `Limits.header_bytes` at most and `Limits.header_seconds` from the first byte it may have;
   a connection that takes more is ended. Without this a client could hold memory and connections by never finishing.
2. A client that takes nothing of its answer for `Limits.idle_seconds` is cut off, so that it cannot keep files open by not reading.
3. Runs on the event loop only.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interfaces.web.limits import Limits

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """One connection. Subclasses set `limits`."""

    limits = Limits()
    _head = 0
    _in_head = True
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.limits.header_seconds, self._end, _TOO_SLOW)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a request's head, and parse."""
        if self._in_head:
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > self.limits.header_bytes:
            self._end(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Start to count a head, and the clock of a request that follows another."""
        super().on_message_begin()
        self._in_head = True
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.limits.header_seconds, self._end, _TOO_SLOW)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers after a body are dropped, because the request was judged without them."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._in_head = False
        self._head = 0
        self._stop_clock()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect the next head."""
        super().on_message_complete()
        self._in_head = True

    def pause_writing(self) -> None:
        """Start the clock of a client that takes nothing."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.limits.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it: the client takes again."""
        super().resume_writing()
        self._stop_stall_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop every clock."""
        self._stop_clock()
        self._stop_stall_clock()
        super().connection_lost(exc)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_stall_clock(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _end(self, answer: bytes) -> None:
        self._stop_clock()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()


def limited_protocol(limits: Limits) -> type[LimitedProtocol]:
    """Return the protocol class for `limits`; uvicorn makes its instances."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})
