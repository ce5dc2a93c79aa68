"""Reading what a client sends, within limits.

1. A body is counted as it arrives; ``Content-Length`` is only a reason to refuse early.
2. A client that sends nothing for `Limits.idle_seconds`, or less than `Limits.body_rate` bytes a second over the whole body, is given up
   on. While the disk is the slower one, no clock runs.
3. An `Upload` is read by a thread while it arrives: at most `Limits.upload_buffer` bytes of it are in memory, whatever its size.
4. A body that is refused, or whose client leaves, makes `Upload.read` raise. It never just ends, so that no half file is ever published.
5. A body that fits into the buffer is complete before a thread is taken, so that a slow client with a small file holds none. A client
   that waits to be told to go on (``Expect``) is told when the first byte is wanted: what is refused is never sent.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import Disconnected, Request
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal

P = ParamSpec("P")
T = TypeVar("T")

_GATHER_SECONDS = 0.25
_GATHER = 256 << 10
"""How much a reading thread waits for at least before it is woken, bytes: each waking costs a turn of the interpreter's lock."""


async def read_body(request: Request, limit: int, limits: Limits) -> bytes:
    """Return a body of at most `limit` bytes. Raises `Kind.TOO_LARGE`, a 408 `Refusal`, `Disconnected`."""
    arrival = Arrival(request, limit, limits)
    pieces = []
    while piece := await arrival.next():
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Arrival:
    """The pieces of a body in the order they come. For the event loop."""

    def __init__(self, request: Request, limit: int, limits: Limits) -> None:
        """Read the body of `request`. Raises `Kind.TOO_LARGE` when it announces more than `limit` bytes."""
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > limit:
            raise _too_large(limit)
        self._receive = request.receive
        self._limit = limit
        self._idle = limits.idle_seconds
        self._rate = limits.body_rate
        self._spent = 0.0
        self.total = 0
        self.complete = False

    async def next(self) -> bytes:
        """Return the next piece, nothing at the end. Raises `Kind.TOO_LARGE`, a 408 `Refusal`, `Disconnected`."""
        while not self.complete:
            if piece := await self._piece():
                return piece
        return b""

    async def _piece(self) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._patience()):
                message = await self._receive()
        except TimeoutError as error:
            raise _too_slow() from error
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._spent += loop.time() - began
        self.complete = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        self.total += len(piece)
        if self.total > self._limit:
            raise _too_large(self._limit)
        return piece

    def _patience(self) -> float:
        """Return how many seconds the next piece may take."""
        earned = self._idle + self.total / self._rate
        return max(0.0, min(self._idle, earned - self._spent))


SHORT_BODY = 64 << 10
"""Up to this length, in bytes, a change whose whole content is here is made on the event loop."""


class Upload:
    """A body as the content of a file: `read` is for one thread of the pool, `into` for the event loop."""

    def __init__(self, request: Request, limits: Limits) -> None:
        """Stream the body of `request`. Raises `Kind.TOO_LARGE` when it announces more than a file may have."""
        self._arrival = Arrival(request, limits.file_bytes, limits)
        self._capacity = limits.upload_buffer
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._ended = False
        self._asked = asyncio.Event()
        self._waits = request.headers.get("expect", "").lower() == "100-continue"
        self._fault: Fault | None = None
        self._left = False
        self._wanted = 0
        self._changed = threading.Condition()
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()

    @property
    def total(self) -> int:
        """Return how many bytes arrived so far; all of them once `read` returned nothing."""
        return self._arrival.total

    @property
    def complete(self) -> bool:
        """Tell whether the whole body is here already, so that reading it waits for nobody."""
        return self._ended

    async def into(self, pool: Pool, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns, which reads this upload in a thread while it arrives.

        Raises what it raises, and `Disconnected` when the client left meanwhile.
        """
        if not self._waits:
            await self._fill()
        if self._ended:
            run = pool.run_short if self.total <= SHORT_BODY else pool.run
            return await run(call, *args, **kwargs)
        feeding = asyncio.create_task(self._feed())
        try:
            return await pool.run_waiting(call, *args, **kwargs)
        except Fault:
            if self._left:
                raise Disconnected from None
            raise
        finally:
            # A call that stopped reading early must not leave a task that waits for room for ever.
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`, nothing at the end. Raises the fault that ended the body early.

        Few bytes are waited for no longer than `_GATHER_SECONDS`, so that whoever reads can look at the lease in between.
        """
        if self._waits:
            self._loop.call_soon_threadsafe(self._asked.set)
        with self._changed:
            self._wanted = min(size, _GATHER, self._capacity)
            self._changed.wait_for(self._has_enough, _GATHER_SECONDS)
            self._wanted = 1
            self._changed.wait_for(self._has_enough)
            if self._fault is not None:
                raise self._fault
            data = self._take(size)
        if not self._ended:
            self._loop.call_soon_threadsafe(self._room.set)
        return data

    def _has_enough(self) -> bool:
        return self._held >= self._wanted or self._ended or self._fault is not None

    async def _fill(self) -> None:
        """Wait until the body is complete or the buffer is full."""
        while self._held < self._capacity:
            piece = await self._arrival.next()
            if not piece:
                self._ended = True
                return
            self._pieces.append(piece)
            self._held += len(piece)

    async def _feed(self) -> None:
        """Hand over the rest as it arrives, never more than the buffer holds."""
        try:
            if self._waits:
                await self._asked.wait()
            await self._make_room()
            while piece := await self._arrival.next():
                self._offer(piece)
                await self._make_room()
            self._end(None)
        except Fault as fault:
            self._end(fault)
        except Disconnected:
            self._left = True
            self._end(_broken())
        except asyncio.CancelledError:
            self._end(_broken())
            raise

    def _offer(self, piece: bytes) -> None:
        with self._changed:
            self._pieces.append(piece)
            self._held += len(piece)
            if self._held >= self._wanted:
                self._changed.notify()

    async def _make_room(self) -> None:
        """Wait until the buffer is not full; `_fill` may have filled it before anybody read."""
        self._room.clear()
        while self._held >= self._capacity:
            await self._room.wait()
            self._room.clear()

    def _end(self, fault: Fault | None) -> None:
        with self._changed:
            self._ended, self._fault = fault is None, fault
            self._changed.notify()

    def _take(self, size: int) -> bytes:
        taken: list[bytes] = []
        missing = size
        while missing and self._pieces:
            piece = self._pieces.popleft()
            if len(piece) > missing:
                self._pieces.appendleft(piece[missing:])
                piece = piece[:missing]
            taken.append(piece)
            missing -= len(piece)
        self._held -= size - missing
        return taken[0] if len(taken) == 1 else b"".join(taken)


def _too_large(limit: int) -> Refusal:
    return Refusal(413, Kind.TOO_LARGE, f"the body has more than {limit} bytes", hint="send it in parts")


def _broken() -> Fault:
    return Fault(Kind.UNAVAILABLE, "the body broke off", hint="send it again")


def _too_slow() -> Refusal:
    return Refusal(408, Kind.UNAVAILABLE, "the body stopped arriving", hint="send it again, faster")
