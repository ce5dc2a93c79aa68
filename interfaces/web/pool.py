"""Where blocking calls run: a bounded set of threads beside the event loop.

1. The event loop never waits for a disk or a lock; the port may, so every call of it goes through here.
2. Streams that wait for events have threads of their own: they never keep a request from running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Pool:
    """A bounded set of threads that a coroutine sends calls to."""

    def __init__(self, name: str, threads: int) -> None:
        """Have at most `threads` threads, started as they are needed and called `name`."""
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns, or raise what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(call, *args, **kwargs))

    def detach(self, call: Callable[[], object]) -> None:
        """Run `call` some time later; nobody waits for it."""
        self._executor.submit(call)

    def close(self) -> None:
        """Accept no more calls and forget those that have not begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)
