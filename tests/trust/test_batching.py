from __future__ import annotations

import threading

import pytest

from trust.batching import Batcher


def test_a_caller_alone_is_carried_out_alone() -> None:
    groups: list[list[int]] = []
    batcher: Batcher[int, int] = Batcher(lambda items: groups.append(items) or [item * 2 for item in items])
    assert [batcher.submit(number) for number in (1, 2)] == [2, 4]
    assert groups == [[1], [2]]


def test_what_arrives_meanwhile_is_carried_out_together() -> None:
    started, go, groups = threading.Event(), threading.Event(), []

    def carry_out(items: list[int]) -> list[int]:
        groups.append(sorted(items))
        started.set()
        assert go.wait(30)
        return [item * 2 for item in items]

    batcher: Batcher[int, int] = Batcher(carry_out)
    results: list[int] = []
    first = threading.Thread(target=lambda: results.append(batcher.submit(0)))
    first.start()
    assert started.wait(30)
    others = [threading.Thread(target=lambda number=number: results.append(batcher.submit(number))) for number in range(1, 6)]
    for thread in others:
        thread.start()
    while len(batcher._waiting) < 5:
        threading.Event().wait(0.001)
    go.set()
    for thread in (first, *others):
        thread.join(30)
        assert not thread.is_alive()
    assert groups == [[0], [1, 2, 3, 4, 5]] and sorted(results) == [0, 2, 4, 6, 8, 10]


def test_a_failure_reaches_its_own_group_and_the_next_goes_on() -> None:
    def carry_out(items: list[int]) -> list[int]:
        if 13 in items:
            raise ValueError("13")
        return items

    batcher: Batcher[int, int] = Batcher(carry_out)
    for _ in range(2):
        with pytest.raises(ValueError, match="13"):
            batcher.submit(13)
        assert batcher.submit(7) == 7


def test_a_failure_reaches_everybody_who_was_carried_out_together() -> None:
    started, go, failed = threading.Event(), threading.Event(), []

    def carry_out(items: list[int]) -> list[int]:
        started.set()
        assert go.wait(30)
        if 13 in items:
            raise ValueError("13")
        return items

    batcher: Batcher[int, int] = Batcher(carry_out)

    def submit(item: int) -> None:
        try:
            batcher.submit(item)
        except ValueError:
            failed.append(item)

    first = threading.Thread(target=submit, args=(0,))
    first.start()
    assert started.wait(30)
    others = [threading.Thread(target=submit, args=(item,)) for item in (12, 13, 14)]
    for thread in others:
        thread.start()
    while len(batcher._waiting) < 3:
        threading.Event().wait(0.001)
    go.set()
    for thread in (first, *others):
        thread.join(30)
        assert not thread.is_alive()
    assert sorted(failed) == [12, 13, 14] and batcher.submit(1) == 1


def test_every_caller_gets_its_own_result_under_load() -> None:
    batcher: Batcher[int, int] = Batcher(lambda items: [item * item for item in items])
    wrong: list[int] = []

    def work(start: int) -> None:
        wrong.extend(number for number in range(start, start + 300) if batcher.submit(number) != number * number)

    threads = [threading.Thread(target=work, args=(start * 1000,)) for start in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []
