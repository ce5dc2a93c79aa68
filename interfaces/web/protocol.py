"""The connection: uvicorn's HTTP protocol with limits on what comes before and after a request means anything.

1. A request line with its headers has `Limits.header_bytes` at most and `Limits.header_seconds` from the first byte it may have;
   a connection that takes more is ended. Without this a client could hold memory and connections by never finishing.
2. A client that takes nothing of its answer for `Limits.idle_seconds` is cut off, so that it cannot keep files open by not reading.
3. An answer may come before the whole request: what is still on its way is thrown away for `Limits.linger_seconds`, so that the client
   reads the answer instead of a reset. Then, or at once when the client waits to be told to go on, the connection ends: what it sends
   next could be the body or another request, and nobody may have to guess.
4. When there are `Limits.connections`, one that rests between two requests ends for one that comes, so that nobody keeps others out by
   doing nothing. Where none rests, a request is answered 503.
5. Runs on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from interfaces.web.asgi import SENDING, Extent
from interfaces.web.limits import Limits
from interfaces.web.sending import ExtentSender

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Clock:
    """A call that happens after a while unless it is stopped. For the event loop."""

    __slots__ = ("_timer",)

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self._timer: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        return self._timer is not None

    def start(self, seconds: float, call: Callable[..., object], *args: object) -> None:
        """Have `call` happen in `seconds`, instead of what was to happen before."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(seconds, call, *args)

    def stop(self) -> None:
        """Have nothing happen; repeats do nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class LimitedProtocol(HttpToolsProtocol):
    """One connection. Subclasses set `limits`."""

    limits = Limits()
    _head = 0
    _parsed = 0
    _in_head = True
    _in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first request."""
        super().connection_made(transport)
        if len(self.connections) >= self.limits.connections:
            self._make_room()
        self._deadline, self._stalled, self._lingering = Clock(), Clock(), Clock()
        self._sender = None if self.scheme == "https" else ExtentSender(transport, self.limits.idle_seconds)
        self._deadline.start(self.limits.header_seconds, self._end, _TOO_SLOW)

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
        self._in_head, self._in_body, self._parsed = True, False, 0
        if not self._deadline:
            self._deadline.start(self.limits.header_seconds, self._end, _TOO_SLOW)

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target. No target has a fragment (RFC 9112 section 3.2): what is meant is not guessed, the answer is 400."""
        if b"#" in url:
            raise ValueError("a target has no fragment")
        self._count(url, b"")
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers after a body are dropped, because the request was judged without them."""
        if self._in_head:
            self._count(name, value)
            # The parser keeps blanks after a value, which are no part of it (RFC 9110 section 5.5).
            super().on_header(name, value.strip(b" \t"))

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, and (431) what was parsed no further because it is too long."""
        if self._parsed > self.limits.header_bytes:
            self._end(_TOO_LARGE)
        else:
            super().send_400_response(msg)

    def _count(self, name: bytes, value: bytes) -> None:
        """Count a line of a head that came in one piece with more than it (`data_received` sees the others)."""
        self._parsed += len(name) + len(value) + 4
        if self._parsed > self.limits.header_bytes:
            raise ValueError("the head is too long")

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._in_head = False
        self._head = 0
        self._deadline.stop()
        super().on_headers_complete()
        if self._sender is not None:
            self.scope["extensions"] = cast("Any", {SENDING: partial(self._send_extent, self.cycle, self._sender)})

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._in_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the next head."""
        super().on_message_complete()
        self._in_head = True
        if self._lingering:
            self._lingering.stop()
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def on_response_complete(self) -> None:
        """Go on to the next request, or (rule 3) see this one to its end."""
        unread = self.cycle.response_complete and self.cycle.more_body
        super().on_response_complete()
        if not unread or self.transport.is_closing():
            return
        if self.expect_100_continue and not self._in_body:
            self.transport.close()
        else:
            self._lingering.start(self.limits.linger_seconds, self.transport.close)

    def pause_writing(self) -> None:
        """Start the clock of a client that takes nothing."""
        super().pause_writing()
        self._stalled.start(self.limits.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it: the client takes again."""
        super().resume_writing()
        self._stalled.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop every clock."""
        for clock in (self._deadline, self._stalled, self._lingering):
            clock.stop()
        if self._sender is not None:
            self._sender.close()
        super().connection_lost(exc)

    @staticmethod
    async def _send_extent(cycle: RequestResponseCycle, sender: ExtentSender, extent: Extent) -> None:
        """Send a part of a file as content of the answer of `cycle`, which has announced its length."""
        if extent.count > cycle.expected_content_length:
            raise RuntimeError("the answer announced fewer bytes")
        await sender.send(extent)
        cycle.expected_content_length -= extent.count

    def _make_room(self) -> None:
        for other in self.connections:
            if isinstance(other, LimitedProtocol) and other.timeout_keep_alive_task is not None:
                other.timeout_keep_alive_handler()
                self.connections.discard(other)
                return

    def _end(self, answer: bytes) -> None:
        self._deadline.stop()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()


def limited_protocol(limits: Limits) -> type[LimitedProtocol]:
    """Return the protocol class for `limits`; uvicorn makes its instances."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})
