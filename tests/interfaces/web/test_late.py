"""A door that is made when it is first asked for: once, for everybody who waits, and ended with the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from interfaces.web.asgi import Message, Receive, Scope, Send
from interfaces.web.late import LateMember


class Noted:
    """A door that notes what happens to it."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        notes.append(f"made off the loop: {threading.current_thread() is not threading.main_thread()}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.notes.append(f"asked {scope['raw_path'].decode()}")

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        task = asyncio.current_task()
        self.notes.append("begun")
        yield
        assert asyncio.current_task() is task, "a lifespan ends in the task that it began in"
        self.notes.append("ended")

    def drain(self) -> None:
        self.notes.append("drained")


async def receive() -> Message:
    raise AssertionError


async def send(_: Message) -> None:
    raise AssertionError


def scope(path: str) -> Scope:
    return {"type": "http", "raw_path": path.encode()}


def test_a_door_that_nobody_asks_for_is_not_made() -> None:
    notes: list[str] = []

    async def serve() -> None:
        late = LateMember(lambda: Noted(notes))
        async with late.lifespan():
            late.drain()

    asyncio.run(serve())
    assert notes == []


def test_it_is_made_once_for_everybody_who_waits_and_ends_with_the_server() -> None:
    notes: list[str] = []

    async def serve() -> None:
        late = LateMember(lambda: Noted(notes))
        async with late.lifespan():
            await asyncio.gather(*(late(scope(f"/{number}"), receive, send) for number in range(3)))
            late.drain()

    asyncio.run(serve())
    assert notes[:2] == ["made off the loop: True", "begun"]
    assert sorted(notes[2:5]) == ["asked /0", "asked /1", "asked /2"] and notes[5:] == ["drained", "ended"]


def test_one_that_cannot_be_made_fails_who_asked_and_is_tried_again() -> None:
    notes: list[str] = []
    outcomes = iter([OSError("no memory"), None])

    def make() -> Noted:
        if (failure := next(outcomes)) is not None:
            raise failure
        return Noted(notes)

    async def serve() -> None:
        late = LateMember(make)
        async with late.lifespan():
            with pytest.raises(OSError, match="no memory"):
                await late(scope("/"), receive, send)
            await late(scope("/"), receive, send)

    asyncio.run(serve())
    assert notes[-2:] == ["asked /", "ended"]


def test_one_that_appears_while_the_server_drains_drains_too() -> None:
    notes: list[str] = []

    async def serve() -> None:
        late = LateMember(lambda: Noted(notes))
        async with late.lifespan():
            late.drain()
            await late(scope("/"), receive, send)

    asyncio.run(serve())
    assert notes[1:] == ["begun", "drained", "asked /", "ended"]
