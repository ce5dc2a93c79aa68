"""What happens, as server-sent events.

1. ``id:`` is the sequence of the record, so ``Last-Event-ID`` resumes exactly where a client stopped; without it (and without
   ``?after=``) a client hears what happens from now on.
2. A comment every `Limits.heartbeat_seconds` keeps intermediaries and clients from giving up.
3. A stream ends with the authority behind it (as an event ``fault``) and when the daemon drains; clients reconnect by themselves.
4. Each stream waits in one thread of a bounded set; the source wakes at least once a second, so a client that left is noticed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

from interfaces.faults import Fault, Kind
from interfaces.port import Caller, Control, Document
from interfaces.web.asgi import Reply, Request
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from interfaces.web.problems import describe_fault, render_json

_FROM_NOW = -1
_END: Document = {"end": True}
_HEADERS = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-store"), ("x-accel-buffering", "no"))

T = TypeVar("T")


class Events:
    """The endpoint ``/v1/events``."""

    def __init__(self, control: Control, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        """Serve the events of `control`; `clock` gives seconds that never go back."""
        self._control = control
        self._limits = limits
        self._clock = clock
        self._pool = Pool("http-events", limits.streams)
        self._open = 0
        self._draining = False

    async def answer(self, request: Request, caller: Caller) -> Reply:
        """Return the stream for a client. Raises `Kind.INVALID`, `Kind.DENIED`, and `Kind.UNAVAILABLE` when too many are open."""
        after = _start_after(request)
        if self._draining or self._open >= self._limits.streams:
            raise Fault(Kind.UNAVAILABLE, "no further event stream can be opened", hint="close one, or connect again later")
        self._open += 1
        try:
            iterator = await self._pool.run(self._control.events, caller, after)
        except Fault:
            self._open -= 1
            raise
        return Reply(200, _HEADERS, pieces=self._pieces(iterator, request.request_id), release=self._leave)

    def drain(self) -> None:
        """Let every stream end at its next wake-up, and open no other."""
        self._draining = True

    def close(self) -> None:
        """Release the threads."""
        self._pool.close()

    def _leave(self) -> None:
        self._open -= 1

    async def _pieces(self, iterator: Iterator[Document], request_id: str) -> AsyncIterator[bytes]:
        yield b": connected\n\n"
        spoke = self._clock()
        while not self._draining:
            try:
                document = await self._pool.run(_next, iterator, _END)
            except Fault as fault:
                yield render_event("fault", describe_fault(fault, request_id))
                return
            if document is _END:
                return
            if document:
                yield render_event(str(document["kind"]), document, document["sequence"])
            elif self._clock() - spoke < self._limits.heartbeat_seconds:
                continue
            else:
                yield b": heartbeat\n\n"
            spoke = self._clock()


def render_event(kind: str, document: Document, sequence: int | None = None) -> bytes:
    """Return one event in the wire format; JSON text has no line breaks, so one ``data:`` line carries it."""
    identity = b"" if sequence is None else b"id: %d\n" % sequence
    return identity + b"event: " + kind.encode() + b"\ndata: " + render_json(document) + b"\n\n"


def _next(iterator: Iterator[T], end: T) -> T:
    """Return the next value, or `end`: `StopIteration` cannot travel through a future."""
    return next(iterator, end)


def _start_after(request: Request) -> int:
    text = request.headers.get("last-event-id") or request.parameters.get("after") or str(_FROM_NOW)
    if not text.removeprefix("-").isdecimal() or len(text) > 19:
        raise Fault(Kind.INVALID, f"{text!r} is not the sequence of a record", hint="repeat the id of the last event received")
    return max(_FROM_NOW, int(text))
