"""Short changes on the event loop: acknowledged when they are on stable storage, many by one wait, and never when that failed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from interfaces.faults import Fault, Kind
from interfaces.web.pool import Pool


class Disk:
    """A storage whose settling takes a while and counts; what was made before it began is settled when it ends."""

    def __init__(self, fails: bool = False) -> None:
        self.made: list[int] = []
        self.settled: set[int] = set()
        self.rounds = 0
        self.deferring_now = False
        self._fails = fails

    @contextmanager
    def deferring(self) -> Iterator[None]:
        self.deferring_now = True
        try:
            yield
        finally:
            self.deferring_now = False

    def settle(self) -> None:
        covered = list(self.made)
        self.rounds += 1
        time.sleep(0.02)
        if self._fails:
            raise Fault(Kind.NO_SPACE, "the disk is full")
        self.settled.update(covered)

    def make(self, number: int) -> int:
        assert self.deferring_now
        self.made.append(number)
        return number


def test_every_change_is_on_stable_storage_when_it_returns_and_waits_are_shared() -> None:
    disk = Disk()

    async def change(pool: Pool, number: int) -> None:
        await asyncio.sleep(number / 1000)
        assert await pool.run_short(disk.make, number) == number
        assert number in disk.settled

    async def all_of_them(pool: Pool) -> None:
        await asyncio.gather(*(change(pool, number) for number in range(100)))

    with closing(Pool("short", 4, storage=disk)) as pool:
        asyncio.run(all_of_them(pool))
    assert disk.settled == set(range(100))
    assert disk.rounds < 50


def test_a_change_that_did_not_reach_stable_storage_is_not_acknowledged() -> None:
    disk = Disk(fails=True)

    async def change(pool: Pool, number: int) -> None:
        with pytest.raises(Fault) as caught:
            await pool.run_short(disk.make, number)
        assert caught.value.kind is Kind.NO_SPACE

    async def all_of_them(pool: Pool) -> None:
        await asyncio.gather(*(change(pool, number) for number in range(10)))

    with closing(Pool("short", 4, storage=disk)) as pool:
        asyncio.run(all_of_them(pool))


def test_a_client_that_leaves_takes_nobody_along() -> None:
    disk = Disk()

    async def leave_and_stay(pool: Pool) -> None:
        tasks = [asyncio.create_task(pool.run_short(disk.make, number)) for number in range(10)]
        await asyncio.sleep(0.005)
        for task in tasks[::2]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[1::2] == [1, 3, 5, 7, 9]

    with closing(Pool("short", 4, storage=disk)) as pool:
        asyncio.run(leave_and_stay(pool))


def test_after_a_change_that_took_long_changes_leave_the_event_loop_for_a_while() -> None:
    disk = Disk()
    where: list[str] = []

    def note(seconds: float) -> None:
        where.append(threading.current_thread().name)
        time.sleep(seconds)

    async def some(pool: Pool) -> None:
        await pool.run_short(note, 0.0)
        await pool.run_short(note, 0.05)
        await pool.run_short(note, 0.0)

    with closing(Pool("short", 4, storage=disk)) as pool:
        asyncio.run(some(pool))
    assert [name.startswith("short") for name in where] == [False, False, True]


def test_without_a_storage_every_change_has_a_thread() -> None:
    with closing(Pool("short", 4)) as pool:
        name = asyncio.run(pool.run_short(lambda: threading.current_thread().name))
    assert name.startswith("short")
