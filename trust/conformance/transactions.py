"""Rules 1 to 6 and 9 of the contract: transactions, durability across reopening, epoch."""

from __future__ import annotations

import threading

from trust.conformance.bench import Bench, Check, expect, expect_error, sample_principal
from trust.contract import Engine
from trust.errors import Unknown

_ROUNDS = 40
_THREADS = 4


class _Stop(Exception):
    """Ends a transaction in the middle."""


def _stop() -> None:
    raise _Stop


def a_block_that_raises_leaves_nothing(bench: Bench) -> None:
    """Rule 4."""
    try:
        with bench.engine.transaction():
            bench.engine.principals.add(sample_principal())
            bench.append()
            bench.engine.bump()
            _stop()
    except _Stop:
        pass
    with expect_error(Unknown, "a rolled back principal is gone"):
        bench.engine.principals.find("ana")
    expect(bench.engine.records.head()[0] == 0, "a rolled back record is gone")


def an_inner_transaction_joins_the_outer(bench: Bench) -> None:
    """Rule 1."""
    try:
        with bench.engine.transaction():
            with bench.engine.transaction(durable=False):
                bench.engine.principals.add(sample_principal())
            expect(bench.engine.in_transaction(), "the outer transaction goes on after the inner block")
            _stop()
    except _Stop:
        pass
    expect(not bench.engine.principals.all(), "the outer transaction takes the inner one along")
    expect(not bench.engine.in_transaction(), "a transaction ends with its block")


def a_thread_sees_its_own_writes_and_others_do_not(bench: Bench) -> None:
    """Rules 1 and 5."""
    seen: list[int] = []
    with bench.engine.transaction():
        bench.engine.principals.add(sample_principal())
        expect(len(bench.engine.principals.all()) == 1, "a transaction reads what it wrote")
        reader = threading.Thread(target=lambda: seen.append(len(bench.engine.principals.all())))
        reader.start()
        reader.join()
    expect(seen == [0], "others read what is committed, and wait for nobody")
    expect(len(bench.engine.principals.all()) == 1, "what is committed is read")


def a_commit_is_seen_by_another_opening_at_once(bench: Bench) -> None:
    """Rule 2, durable or not."""
    with bench.other() as other:
        for durable in (True, False):
            with bench.engine.transaction(durable=durable):
                row = bench.append()
            expect(other.records.head() == (row[0], row[10]), "a commit is visible at once")


def what_is_committed_survives_reopening(bench: Bench) -> None:
    """Rule 2."""
    with bench.engine.transaction(durable=False):
        row = bench.append()
    bench.engine.flush()
    expect(bench.reopen().records.head() == (row[0], row[10]), "what was flushed is there after reopening")


def transactions_are_serialised(bench: Bench) -> None:
    """Rule 1, with several threads in each of two openings."""
    with bench.engine.transaction():
        bench.engine.documents.put("counter", "c", {"n": 0}, 0)
    with bench.other() as other:
        threads = [threading.Thread(target=_count, args=(engine,)) for engine in (bench.engine, other) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    counted = bench.engine.documents.find("counter", "c").body["n"]
    expect(counted == 2 * _THREADS * _ROUNDS, f"no step is lost: {counted}")


def _count(engine: Engine) -> None:
    for _ in range(_ROUNDS):
        with engine.transaction(durable=False):
            document = engine.documents.find("counter", "c")
            engine.documents.put("counter", "c", {"n": document.body["n"] + 1}, document.version)


def the_epoch_grows_for_everyone(bench: Bench) -> None:
    """Rule 6."""
    with bench.other() as other:
        before = other.epoch()
        with bench.engine.transaction():
            bench.engine.bump()
        expect(other.epoch() > before, "another opening sees the epoch grow")
        expect(bench.engine.epoch() == other.epoch(), "both see the same epoch")
    epoch = bench.engine.epoch()
    expect(bench.reopen().epoch() == epoch, "the epoch survives reopening")


def closing_twice_is_closing(bench: Bench) -> None:
    """`close` repeats."""
    bench.engine.close()
    bench.engine.close()


CHECKS: tuple[Check, ...] = (
    a_block_that_raises_leaves_nothing,
    an_inner_transaction_joins_the_outer,
    a_thread_sees_its_own_writes_and_others_do_not,
    a_commit_is_seen_by_another_opening_at_once,
    what_is_committed_survives_reopening,
    transactions_are_serialised,
    the_epoch_grows_for_everyone,
    closing_twice_is_closing,
)
"""The checks of this module."""
