"""A door that is made when it is first asked for, so that a worker is ready before it has read what few of its callers need.

1. The door is made in a thread and lives in a task of its own, which enters and leaves its `lifespan`.
2. Who asks while it is made waits; one that cannot be made fails each of them, and is tried again for the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from interfaces.web.asgi import Receive, Scope, Send
from interfaces.web.family import Member


class LateMember:
    """A member of the family that stands for another."""

    def __init__(self, make: Callable[[], Member]) -> None:
        """Serve what `make` returns, which is called once, in a thread."""
        self._make = make
        self._member: Member | None = None
        self._draining = False
        self._making = asyncio.Lock()
        self._ending = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, when need be once the door is there."""
        member = self._member or await self._appear()
        await member(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve while the block runs, and end what has appeared until then."""
        try:
            yield
        finally:
            self._ending.set()
            if self._life is not None:
                await self._life

    def drain(self) -> None:
        """Have the door drain, also one that appears later."""
        self._draining = True
        if self._member is not None:
            self._member.drain()

    async def _appear(self) -> Member:
        async with self._making:
            if self._member is None:
                member = await asyncio.to_thread(self._make)
                begun = asyncio.get_running_loop().create_future()
                self._life = asyncio.create_task(self._live(member, begun))
                await begun
                if self._draining:
                    member.drain()
                self._member = member
            return self._member

    async def _live(self, member: Member, begun: asyncio.Future[None]) -> None:
        try:
            async with member.lifespan():
                begun.set_result(None)
                await self._ending.wait()
        except Exception as error:
            if begun.done():
                raise
            begun.set_exception(error)
