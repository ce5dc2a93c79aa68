"""The scheduler pyfuse3 runs on here: one descriptor to read, one to be woken by, and a tick.

1. pyfuse3 asks its event loop for little: wait until one descriptor is readable, take a lock, start a task. It looks that
   loop up in a module attribute, so that asyncio can stand in for trio; `Loop.surrogate` is what we put there.
2. This matters because a mount is made of short calls: a round trip costs 18 microseconds here, 62 on trio and more on
   asyncio, same machine, same answers. A general loop re-arms its poll set for every call; this one never changes it.
3. One thread runs everything. Tasks give way only where they wait; `tick` runs between them, never within one.
4. Calls that may block go to threads by `in_thread`; their task waits and others go on.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace, TracebackType, coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Body = Coroutine[Any, Any, Any]

_THREADS = 8


class ReaderClosedError(Exception):
    """The descriptor that a task waits for is about to close."""


class Task:
    """A coroutine under way."""

    __slots__ = ("body", "error", "name")

    def __init__(self, body: Body, name: str) -> None:
        self.body = body
        self.name = name
        self.error: Exception | None = None


@coroutine
def _park() -> Generator[None, None, None]:
    """Wait until somebody resumes this task."""
    yield


class Loop:
    """The scheduler; use it once."""

    def __init__(self, tick: Callable[[], None], interval: float) -> None:
        """Call `tick` about every `interval` seconds while running."""
        self._tick = tick
        self._interval = interval
        self._ready: deque[Task] = deque()
        self._finished: deque[Task] = deque()
        self._current: Task | None = None
        self._reader: Task | None = None
        self._closing = False
        self._alive = 0
        self._threads = ThreadPoolExecutor(_THREADS, "fuse")
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._idle_poll = select.poll()
        self._idle_poll.register(self._wake, select.POLLIN)
        self._poll: select.poll | None = None
        self._fd = -1

    @property
    def surrogate(self) -> SimpleNamespace:
        """Return what pyfuse3 takes for its event loop's module."""
        lowlevel = SimpleNamespace(
            wait_readable=self._wait_readable,
            notify_closing=self.close_reader,
            current_task=lambda: self._current,
            current_trio_token=lambda: None,
        )
        return SimpleNamespace(
            Lock=partial(Lock, self), open_nursery=partial(Nursery, self), ClosedResourceError=ReaderClosedError, lowlevel=lowlevel
        )

    def run(self, main: Body) -> None:
        """Run `main` and every task started meanwhile to the end. Raises what a task raises."""
        self.spawn(main, "main")
        due = time.monotonic() + self._interval
        try:
            while self._alive:
                if self._ready:
                    self._step(self._ready.popleft())
                else:
                    self._wait(due)
                now = time.monotonic()
                if now >= due:
                    self._tick()
                    due = now + self._interval
        finally:
            self._threads.shutdown()
            os.close(self._wake)

    def spawn(self, body: Body, name: str) -> None:
        """Start a task."""
        self._alive += 1
        self._ready.append(Task(body, name))

    def resume(self, task: Task) -> None:
        """Let a waiting task go on; from the loop's thread only."""
        self._ready.append(task)

    async def wait_turn(self, queue: deque[Task]) -> None:
        """Wait in a queue until whoever takes this task out of it resumes it."""
        queue.append(self._running())
        await _park()

    async def in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call in a thread and return what it returns, or raise what it raises."""
        future = self._threads.submit(call, *args, **kwargs)
        future.add_done_callback(partial(self._finish, self._running()))
        await _park()
        return future.result()

    def close_reader(self, _fd: int = -1) -> None:
        """Make the task that waits for the descriptor give up, now or at its next wait; safe in a signal's way."""
        self._closing = True
        os.eventfd_write(self._wake, 1)

    def _running(self) -> Task:
        if self._current is None:
            raise RuntimeError("only a task of this loop can wait")
        return self._current

    def _finish(self, task: Task, _future: Future[Any]) -> None:
        self._finished.append(task)
        os.eventfd_write(self._wake, 1)

    async def _wait_readable(self, fd: int) -> None:
        if self._poll is None:
            self._fd = fd
            self._poll = select.poll()
            self._poll.register(self._wake, select.POLLIN)
            self._poll.register(fd, select.POLLIN)
        self._reader = self._current
        await _park()

    def _step(self, task: Task) -> None:
        self._current = task
        error, task.error = task.error, None
        try:
            if error is None:
                task.body.send(None)
            else:
                task.body.throw(error)
        except StopIteration:
            self._alive -= 1
        finally:
            self._current = None

    def _wait(self, due: float) -> None:
        # The descriptor is watched only while a task waits for it: with all tasks busy it would be readable without end.
        watched = self._poll if self._reader is not None and self._poll is not None else self._idle_poll
        for fd, _events in watched.poll(max(0.0, (due - time.monotonic()) * 1000)):
            if fd == self._wake:
                self._woken()
            else:
                self._resume_reader(None)

    def _woken(self) -> None:
        os.eventfd_read(self._wake)
        while self._finished:
            self._ready.append(self._finished.popleft())
        if self._closing:
            self._resume_reader(ReaderClosedError())

    def _resume_reader(self, error: Exception | None) -> None:
        task, self._reader = self._reader, None
        if task is not None:
            task.error = error
            self._ready.append(task)


class Lock:
    """A lock between tasks, given on in the order it was asked for."""

    def __init__(self, loop: Loop) -> None:
        """Make a free lock."""
        self._loop = loop
        self._held = False
        self._waiting: deque[Task] = deque()

    async def __aenter__(self) -> None:
        if self._held:
            await self._loop.wait_turn(self._waiting)
        self._held = True

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._waiting:
            self._loop.resume(self._waiting.popleft())
        else:
            self._held = False


class Nursery:
    """Where pyfuse3 starts its tasks; the loop itself waits for their end."""

    def __init__(self, loop: Loop) -> None:
        """Start tasks on `loop`."""
        self._loop = loop

    async def __aenter__(self) -> Nursery:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def start_soon(self, call: Callable[..., Body], *args: object, name: str = "") -> None:
        """Start a task."""
        self._loop.spawn(call(*args), name)
