"""The flight recorder over the real engine: promises, damage, restarts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from tests.trust.samples import NOW, give_lease
from trust import Trust
from trust.chain import GENESIS, SALT_BYTES, Draft, Walked, seal, walk
from trust.errors import ChainBroken, RecorderUnavailable, ScopeInvalid, Unknown
from trust.model import RecordPhase, Sequence


@contextmanager
def tampering(folder: Path) -> Iterator[apsw.Connection]:
    """Open the database without any of the guards."""
    connection = apsw.Connection(str(folder / "trust.db"))
    for trigger in ("records_follow", "records_stay", "records_remain"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("PRAGMA foreign_keys=OFF")
    yield connection
    connection.close()


def fill(trust: Trust, count: int = 10) -> None:
    for number in range(count):
        trust.state("seen", None, {"n": number}, NOW)


# what a record is


def test_an_act_is_announced_concluded_and_found(trust: Trust) -> None:
    _, secret = give_lease(trust)
    identity = trust.authenticate(secret, NOW)
    intent = trust.intend("merge", identity, {"into": "main", "path": "a\udcff"}, NOW)
    assert [record.sequence for record in trust.unconcluded()] == [intent]
    outcome = trust.conclude(intent, {"commit": "abc"}, NOW + 1)
    assert trust.unconcluded() == []
    first, second = trust.records()
    assert (first.phase, first.kind, first.principal, first.run) == (RecordPhase.INTENT, "merge", "coder", "run-1")
    assert first.body == {"into": "main", "path": "a\udcff"} and identity.lease is not None and first.lease == identity.lease.id
    assert (second.phase, second.refers, second.kind, second.run, second.time) == (RecordPhase.OUTCOME, intent, "merge", "run-1", NOW + 1)
    assert second.previous == first.hash and first.previous == GENESIS.hex() and trust.head() == (outcome, second.hash)
    assert trust.record(intent) == first


def test_an_intent_is_concluded_once_and_nothing_else_is(trust: Trust) -> None:
    intent, fact = trust.intend("merge", None, {}, NOW), trust.state("seen", None, {}, NOW)
    trust.conclude(intent, {}, NOW)
    for number in (intent, fact, Sequence(99)):
        with pytest.raises(Unknown):
            trust.conclude(number, {}, NOW)
    with pytest.raises(Unknown):
        trust.record(99)


def test_records_are_found_by_place_kind_and_run(trust: Trust) -> None:
    identity = trust.authenticate(give_lease(trust)[1], NOW)
    for number in range(6):
        trust.state("odd" if number % 2 else "even", identity if number < 3 else None, {}, NOW)
    assert [record.sequence for record in trust.records(after=2, limit=3)] == [3, 4, 5]
    assert [record.sequence for record in trust.records(kind="odd")] == [2, 4, 6]
    assert [record.sequence for record in trust.records(run="run-1", kind="odd")] == [2]
    assert list(trust.records(limit=0)) == []


def test_a_record_holds_no_secret(trust: Trust) -> None:
    _, secret = give_lease(trust)
    _, token = trust.issue_token("ana", "x", None, NOW)
    trust.state("mistake", trust.authenticate(secret, NOW), {"header": f"Bearer {secret}", "nested": [{"t": token}]}, NOW)
    body = next(iter(trust.records())).body
    assert body == {"header": "Bearer anl1.[redacted]", "nested": [{"t": "nat1.[redacted]"}]}


def test_text_that_would_not_come_back_is_refused(trust: Trust) -> None:
    with pytest.raises(ScopeInvalid):
        trust.state("two\nlines", None, {}, NOW)
    with pytest.raises(TypeError):
        trust.state("seen", None, {"path": b"bytes"}, NOW)
    assert trust.head()[0] == 0


# durability


class Disk:
    """Watches what is synced; can be made to fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.fails = False
        self._real = os.fdatasync
        monkeypatch.setattr("trust.engines.sqlite.database.os.fdatasync", self._sync)

    def _sync(self, descriptor: int) -> None:
        if self.fails:
            raise OSError(5, "the disk is gone")
        self._real(descriptor)
        self.syncs += 1


def test_an_intent_alone_costs_one_sync_and_has_it_when_it_returns(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    trust.flush()
    disk = Disk(monkeypatch)
    for number in range(1, 4):
        trust.intend("merge", None, {}, NOW)
        assert disk.syncs == number


def test_callers_that_come_together_share_a_sync(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    barrier = threading.Barrier(32)

    def announce() -> None:
        barrier.wait()
        trust.intend("merge", None, {}, NOW)

    threads = [threading.Thread(target=announce) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trust.head()[0] == 32 and trust.verify().ok
    assert disk.syncs < 32


def test_outcomes_and_facts_are_synced_by_the_next_flush(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    trust.flush()
    disk = Disk(monkeypatch)
    with trust.transaction():
        fill(trust, 50)
    assert disk.syncs == 1
    trust.flush()
    assert disk.syncs == 1
    trust.state("seen", None, {}, NOW)
    trust.flush()
    assert disk.syncs == 2


def test_facts_reach_the_disk_without_being_asked(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    trust.flush()
    synced = threading.Event()
    real = os.fdatasync
    monkeypatch.setattr("trust.engines.sqlite.database.os.fdatasync", lambda descriptor: (real(descriptor), synced.set()))
    trust.state("seen", None, {}, NOW)
    assert synced.wait(30)


def test_after_a_failed_sync_nothing_is_promised_any_more(trust: Trust, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    trust.intend("merge", None, {}, NOW)
    disk.fails = True
    with pytest.raises(RecorderUnavailable, match="the disk is gone"):
        trust.intend("merge", None, {}, NOW)
    disk.fails = False
    for act in (lambda: trust.intend("merge", None, {}, NOW), trust.flush, lambda: trust.put_document("run", "r", {}, 0)):
        with pytest.raises(RecorderUnavailable):
            act()
    again = Trust.open(tmp_path / "trust")
    assert again.verify().ok
    again.intend("merge", None, {}, NOW)
    again.close()
    with pytest.raises(RecorderUnavailable):
        trust.close()


def test_a_closed_recorder_refuses(tmp_path: Path) -> None:
    trust = Trust.open(tmp_path / "t")
    trust.close()
    with pytest.raises(RecorderUnavailable):
        trust.intend("merge", None, {}, NOW)


# verification


def test_a_sound_chain_is_sound_and_says_what_it_can_not_know(trust: Trust) -> None:
    assert trust.verify().ok and trust.verify().records == 0
    fill(trust)
    verification = trust.verify()
    assert (verification.ok, verification.records, verification.first_bad) == (True, 10, None)
    assert verification.completeness == "chain consistent, completeness unknown"
    assert verification.head == trust.head()[1]


DAMAGES: dict[str, tuple[str, int]] = {
    "body": ("UPDATE records SET body = '{\"n\":7}' WHERE sequence = 5", 5),
    "time": ("UPDATE records SET time = time + 1 WHERE sequence = 4", 4),
    "phase": ("UPDATE records SET phase = 'intent' WHERE sequence = 4", 4),
    "field moved into its neighbour": ("UPDATE records SET kind = 'see', principal = 'n' WHERE sequence = 3", 3),
    "hash": ("UPDATE records SET hash = zeroblob(32) WHERE sequence = 6", 6),
    "previous": ("UPDATE records SET previous = zeroblob(32) WHERE sequence = 6", 6),
    "refers": ("UPDATE records SET refers = 1 WHERE sequence = 2", 2),
    "first": ("UPDATE records SET body = '{}' WHERE sequence = 1", 1),
    "last": ("UPDATE records SET body = '{}' WHERE sequence = 10", 10),
    "missing": ("DELETE FROM records WHERE sequence = 5", 5),
    "missing first": ("DELETE FROM records WHERE sequence = 1", 1),
    "reordered": ("UPDATE records SET sequence = CASE sequence WHEN 4 THEN -5 ELSE -4 END WHERE sequence IN (4, 5)", 4),
    "all gone but the last": ("DELETE FROM records WHERE sequence < 10", 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_first_bad_record_is_named(trust: Trust, tmp_path: Path, damage: str) -> None:
    statement, expected = DAMAGES[damage]
    fill(trust)
    with tampering(tmp_path / "trust") as connection:
        connection.execute(statement)
        connection.execute("UPDATE records SET sequence = -sequence WHERE sequence < 0")
    verification = trust.verify()
    assert (verification.ok, verification.first_bad, verification.records) == (False, expected, expected - 1)
    assert str(expected) in verification.why


def test_a_record_that_was_changed_and_sealed_again_does_not_fit_the_next(trust: Trust, tmp_path: Path) -> None:
    fill(trust)
    record = trust.record(4)
    draft = Draft(record.time, record.phase.value, None, record.kind, "", "", "", '{"n":"forged"}')
    forged = seal(draft, 4, bytes.fromhex(record.previous), bytes(SALT_BYTES))
    with tampering(tmp_path / "trust") as connection:
        connection.execute("UPDATE records SET body = ?, hash = ?, salt = ? WHERE sequence = 4", (forged[8], forged[10], forged[11]))
    verification = trust.verify()
    assert (verification.first_bad, verification.why) == (5, "record 5 does not follow the one before it")


def test_a_cut_off_end_shows_against_an_anchor_only(trust: Trust, tmp_path: Path) -> None:
    fill(trust)
    anchor, middle = trust.head(), list(trust.records())[3]
    assert trust.verify(anchor).ok and trust.verify((middle.sequence, middle.hash)).ok
    with tampering(tmp_path / "trust") as connection:
        connection.execute("DELETE FROM records WHERE sequence > 7")
    assert trust.verify().ok
    verification = trust.verify(anchor)
    assert (verification.ok, verification.first_bad) == (False, 8) and "ends before" in verification.why


def test_a_rewritten_chain_shows_against_an_anchor(trust: Trust) -> None:
    fill(trust)
    verification = trust.verify((4, "0" * 64))
    assert (verification.ok, verification.first_bad) == (False, 4) and "another chain" in verification.completeness
    assert "complete up to the anchored record 10" in trust.verify(trust.head()).completeness
    assert trust.verify((0, GENESIS.hex())).ok


def test_a_broken_chain_is_not_continued(trust: Trust, tmp_path: Path) -> None:
    fill(trust)
    with tampering(tmp_path / "trust") as connection:
        connection.execute("UPDATE records SET body = '{}' WHERE sequence = 10")
    trust.close()
    again = Trust.open(tmp_path / "trust")
    acts: tuple[Callable[[], object], ...] = (lambda: again.intend("merge", None, {}, NOW), lambda: again.state("seen", None, {}, NOW))
    for act in acts:
        with pytest.raises(ChainBroken, match="record 10 was changed"):
            act()
    assert again.verify().first_bad == 10 and again.head()[0] == 10
    again.close()


def test_a_break_that_verify_finds_stops_appending_too(trust: Trust, tmp_path: Path) -> None:
    fill(trust, 200)
    with tampering(tmp_path / "trust") as connection:
        connection.execute("UPDATE records SET body = '{}' WHERE sequence = 3")
    trust.state("seen", None, {}, NOW)
    assert trust.verify().first_bad == 3
    with pytest.raises(ChainBroken):
        trust.state("seen", None, {}, NOW)


def test_every_byte_of_a_record_is_covered() -> None:
    draft = Draft(7, "intent", 1, "merge", "ana", "run", "lease", '{"a":1}')
    row = seal(draft, 1, GENESIS, bytes(SALT_BYTES))
    start = Walked(0, GENESIS)
    assert walk([row], start) == Walked(1, row[10])
    for index, value in enumerate(row):
        changed = value + 1 if isinstance(value, int) else value + b"x" if isinstance(value, bytes) else f"{value}x"
        assert walk([(*row[:index], changed, *row[index + 1 :])], start).why  # type: ignore[arg-type]
