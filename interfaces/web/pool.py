"""Where blocking calls run: bounded sets of threads beside the event loop.

1. The event loop never waits for a disk or a lock; the port may, so what can take long goes through here.
   A short change whose content is here already takes a tenth of a millisecond; handing it to a thread and back costs as much again, many
   times that under load. So it runs on the event loop, and only its way to stable storage is waited for elsewhere, once for all changes of
   the moment. When one took long, because somebody held a lock, changes go to threads for a while.
2. A call that waits for its client (a body that is still arriving, an event) has a thread of another set: slow clients never keep the
   requests of others from running. When that set is taken, the next one is refused at once and never queued behind the slow.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from interfaces.faults import Fault, Kind

P = ParamSpec("P")
T = TypeVar("T")


_LONG_SECONDS = 0.02
_AVOIDING_SECONDS = 1.0


class Storage(Protocol):
    """Where changes become durable; the `Control` port is one."""

    def deferring(self) -> AbstractContextManager[None]:
        """Run a block in which changes of this thread do not wait for stable storage."""

    def settle(self) -> None:
        """Return once what was deferred before is on stable storage."""


class Pool:
    """Threads that a coroutine sends calls to."""

    def __init__(self, name: str, threads: int, waiting: int = 64, storage: Storage | None = None) -> None:
        """Have at most `threads` threads for calls and `waiting` for those that wait for clients, started as needed, called `name`.

        With a `storage` short changes are made on the event loop.
        """
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._waiting = ThreadPoolExecutor(waiting, thread_name_prefix=f"{name}-waiting")
        self._free = waiting
        self._storage = storage
        self._threads_until = 0.0
        self._round: asyncio.Future[None] | None = None
        self._following: asyncio.Future[None] | None = None

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns, or raise what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(call, *args, **kwargs))

    async def run_waiting(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do as `run` with a call that waits for its client. Raises `Kind.UNAVAILABLE` when too many do."""
        if self._free == 0:
            raise Fault(Kind.UNAVAILABLE, "too many clients are sending at once", hint="repeat it in a moment")
        self._free -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._waiting, partial(call, *args, **kwargs))
        finally:
            self._free += 1

    async def run_short(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do as `run` with a change that takes no longer than a disk's answer, and return when it is on stable storage."""
        storage, began = self._storage, time.monotonic()
        if storage is None or began < self._threads_until:
            return await self.run(call, *args, **kwargs)
        with storage.deferring():
            answer = call(*args, **kwargs)
        ended = time.monotonic()
        if ended - began > _LONG_SECONDS:
            self._threads_until = ended + _AVOIDING_SECONDS
        await self._settle(storage)
        return answer

    async def _settle(self, storage: Storage) -> None:
        """Return when a `settle` that began after this call has ended. One runs at a time; whoever comes meanwhile shares the next."""
        if self._round is None:
            self._round = asyncio.ensure_future(self.run(storage.settle))
            self._round.add_done_callback(partial(self._end_round, storage))
            await asyncio.shield(self._round)
            return
        if self._following is None:
            self._following = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._following)

    def _end_round(self, storage: Storage, ended: asyncio.Future[None]) -> None:
        """Begin the round of those who came while the last one ran; what fails in it they are told themselves."""
        ended.exception()
        following, self._round, self._following = self._following, None, None
        if following is None:
            return
        self._round = asyncio.ensure_future(self.run(storage.settle))
        self._round.add_done_callback(partial(_pass_on, following))
        self._round.add_done_callback(partial(self._end_round, storage))

    def detach(self, call: Callable[[], object]) -> None:
        """Run `call` some time later; nobody waits for it."""
        self._executor.submit(call)

    def close(self) -> None:
        """Accept no more calls and forget those that have not begun."""
        for executor in (self._executor, self._waiting):
            executor.shutdown(wait=False, cancel_futures=True)


def _pass_on(following: asyncio.Future[None], ended: asyncio.Future[None]) -> None:
    """Tell those who wait for a round how it ended."""
    if following.done():
        return
    failure = ended.exception()
    if failure is not None:
        following.set_exception(failure)
    else:
        following.set_result(None)
