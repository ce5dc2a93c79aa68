"""The scheduler: order, threads, and how it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from interfaces.fuse.channels.loop import Loop, ReaderClosedError


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_tasks_run_until_the_last_has_ended() -> None:
    loop = Loop(lambda: None, 1.0)
    order: list[str] = []

    async def child(name: str) -> None:
        order.append(name)

    async def main() -> None:
        async with loop.surrogate.open_nursery() as nursery:
            nursery.start_soon(child, "first", name="one")
            nursery.start_soon(child, "second", name="two")
        order.append("main")

    loop.run(main())
    assert order == ["main", "first", "second"]


def test_a_task_waits_until_its_descriptor_is_readable(pipe: tuple[int, int]) -> None:
    loop = Loop(lambda: None, 1.0)
    got: list[bytes] = []

    async def reader() -> None:
        await loop.surrogate.lowlevel.wait_readable(pipe[0])
        got.append(os.read(pipe[0], 10))

    async def writer() -> None:
        os.write(pipe[1], b"there")

    loop.spawn(writer(), "writer")
    loop.run(reader())
    assert got == [b"there"]


def test_a_blocking_call_leaves_others_running_and_gives_its_result() -> None:
    loop = Loop(lambda: None, 1.0)
    gate = threading.Event()
    order: list[object] = []

    async def blocked() -> None:
        order.append(await loop.in_thread(gate.wait, 10))

    async def other() -> None:
        order.append("other")
        gate.set()

    loop.spawn(other(), "other")
    loop.run(blocked())
    assert order == ["other", True]


def test_what_a_blocking_call_raises_reaches_its_task() -> None:
    loop = Loop(lambda: None, 1.0)

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await loop.in_thread(divmod, 1, 0)

    loop.run(main())


def test_a_lock_is_given_on_in_the_order_it_was_asked_for() -> None:
    loop = Loop(lambda: None, 1.0)
    lock = loop.surrogate.Lock()
    order: list[int] = []

    async def hold(number: int) -> None:
        async with lock:
            await loop.in_thread(int)
            order.append(number)

    for number in range(5):
        loop.spawn(hold(number), str(number))
    loop.run(hold(5))
    assert order == [0, 1, 2, 3, 4, 5]


def test_the_tick_runs_while_all_wait(pipe: tuple[int, int]) -> None:
    ticks = []

    def tick() -> None:
        ticks.append(1)
        if len(ticks) == 3:
            loop.close_reader()

    loop = Loop(tick, 0.001)

    async def reader() -> None:
        with pytest.raises(ReaderClosedError):
            await loop.surrogate.lowlevel.wait_readable(pipe[0])

    loop.run(reader())
    assert len(ticks) >= 3


def test_what_a_task_raises_ends_the_run() -> None:
    loop = Loop(lambda: None, 1.0)

    async def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop.run(main())


def test_only_a_task_can_wait() -> None:
    loop = Loop(lambda: None, 1.0)
    coroutine = loop.in_thread(int)
    with pytest.raises(RuntimeError):
        coroutine.send(None)
