"""Where blocking calls run: bounded sets of threads beside the event loop.

1. The event loop never waits for a disk or a lock; the port may, so what can take long goes through here.
2. A call that waits for its client (a body that is still arriving, an event) has a thread of another set: slow clients never keep the
   requests of others from running. When that set is taken, the next one is refused at once and never queued behind the slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from interfaces.faults import Fault, Kind

P = ParamSpec("P")
T = TypeVar("T")


class Pool:
    """Threads that a coroutine sends calls to."""

    def __init__(self, name: str, threads: int, waiting: int = 64) -> None:
        """Have at most `threads` threads for calls and `waiting` for those that wait for clients, started as needed, called `name`."""
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._waiting = ThreadPoolExecutor(waiting, thread_name_prefix=f"{name}-waiting")
        self._free = waiting

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

    def detach(self, call: Callable[[], object]) -> None:
        """Run `call` some time later; nobody waits for it."""
        self._executor.submit(call)

    def close(self) -> None:
        """Accept no more calls and forget those that have not begun."""
        for executor in (self._executor, self._waiting):
            executor.shutdown(wait=False, cancel_futures=True)
