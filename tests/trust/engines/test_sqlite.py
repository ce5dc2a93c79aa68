"""What is particular to the SQLite engine: its guards, its version, its group sync."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from trust.chain import GENESIS, SALT_BYTES, Draft, seal
from trust.engines.sqlite.database import Database, _connect
from trust.engines.sqlite.engine import open_engine, probe
from trust.engines.sqlite.sync import GroupSync
from trust.errors import RecorderUnavailable

ROW = seal(Draft(1, "fact", None, "seen", "", "", "", "{}"), 1, GENESIS, bytes(SALT_BYTES))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "trust.db")
    with opened.transaction(durable=True):
        opened.change("INSERT INTO records VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ROW)
        opened.change("INSERT INTO tree VALUES(8, 0, x'00')")
        opened.change("INSERT INTO checkpoints VALUES(1, 5, 'note')")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = 'x'",
        "DELETE FROM records",
        "INSERT OR REPLACE INTO records SELECT * FROM records",
        "INSERT INTO records SELECT sequence + 2, time, phase, refers, kind, principal, run, lease, body, previous, hash, salt"
        " FROM records",
        "UPDATE records SET body = '', salt = zeroblob(32)",
        "UPDATE tree SET hash = x'01'",
        "DELETE FROM tree",
        "INSERT OR REPLACE INTO tree VALUES(8, 0, x'01')",
        "UPDATE checkpoints SET note = 'another'",
        "DELETE FROM checkpoints",
        "INSERT OR REPLACE INTO checkpoints VALUES(1, 5, 'another')",
        "INSERT INTO segments VALUES(1, 1, x'', x'', x'', 5, NULL)",
        "DROP TABLE records",
        "DROP TRIGGER records_stay",
        "DROP INDEX records_by_run",
        "ALTER TABLE records RENAME TO gone",
        "CREATE TRIGGER x BEFORE INSERT ON records BEGIN SELECT 1; END",
        "ATTACH ':memory:' AS other",
        "PRAGMA writable_schema = ON",
        "PRAGMA recursive_triggers = OFF",
        "PRAGMA synchronous = OFF",
        "UPDATE sqlite_master SET sql = ''",
        "INSERT INTO meta VALUES('epoch', 'text')",
    ],
)
def test_no_statement_goes_around_the_guards(database: Database, statement: str) -> None:
    with pytest.raises((apsw.AuthError, apsw.ConstraintError, apsw.SQLError)), database.transaction(durable=True):
        database.change(statement)
    assert database.rows("SELECT * FROM records") == [ROW]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = 'another'",
        "UPDATE records SET body = ''",
        "UPDATE records SET salt = zeroblob(32)",
        "UPDATE records SET body = '', salt = zeroblob(16)",
        "UPDATE records SET body = '', salt = zeroblob(32), hash = x'00'",
        "UPDATE records SET body = '', salt = zeroblob(32), time = 7",
        "DELETE FROM records",
        "INSERT OR REPLACE INTO records SELECT * FROM records",
        "DROP TRIGGER records_stay",
    ],
)
def test_upkeep_redacts_and_nothing_else(database: Database, statement: str) -> None:
    with pytest.raises((apsw.AuthError, apsw.ConstraintError)), database.transaction(durable=True), database.upkeep():
        database.change(statement)
    assert database.rows("SELECT * FROM records") == [ROW]
    with database.transaction(durable=True), database.upkeep():
        database.change("UPDATE records SET body = '', salt = zeroblob(32)")
    with pytest.raises(apsw.AuthError), database.transaction(durable=True):
        database.change("UPDATE records SET body = '', salt = zeroblob(32)")
    assert database.rows("SELECT body, length(salt) FROM records") == [("", 32)]


def test_replacing_a_record_is_removing_it_even_without_the_guard_of_numbers(database: Database, tmp_path: Path) -> None:
    connection = _connect(tmp_path / "trust.db", apsw.SQLITE_OPEN_READWRITE)
    connection.execute("DROP TRIGGER records_follow")
    with pytest.raises(apsw.ConstraintError, match="not removed"):
        connection.execute("INSERT OR REPLACE INTO records SELECT * FROM records")
    connection.close()
    assert database.rows("SELECT * FROM records") == [ROW]


def test_a_reader_changes_nothing(database: Database) -> None:
    with pytest.raises(RecorderUnavailable):
        database.rows("INSERT INTO intents VALUES(1) RETURNING sequence")
    with pytest.raises(RuntimeError):
        database.change("INSERT INTO intents VALUES(1)")
    with pytest.raises(RuntimeError):
        database.change_many("INSERT INTO intents VALUES(?)", [(1,)])


@pytest.mark.parametrize("version", ["3.40.1", "3.7.0", "3.51.2", "3.6.99"])
def test_a_library_that_can_corrupt_a_shared_log_is_refused(version: str) -> None:
    assert "write-ahead log" in probe(version)


@pytest.mark.parametrize("version", ["", "3.51.3", "3.54.1", "4.0.0"])
def test_a_good_library_is_taken(version: str) -> None:
    assert probe(version) == ""


def test_readers_of_ended_threads_are_let_go(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "t")
    for _ in range(20):
        thread = threading.Thread(target=engine.epoch)
        thread.start()
        thread.join()
    assert len(engine._database._readers) <= 2
    engine.close()


def test_a_durable_step_makes_the_whole_transaction_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, synced, real = open_engine(tmp_path / "t"), threading.Event(), os.fdatasync
    engine.flush()
    monkeypatch.setattr("trust.engines.sqlite.database.os.fdatasync", lambda descriptor: (real(descriptor), synced.set()))
    with engine.transaction(durable=False):
        with engine.transaction(durable=True):
            engine.bump()
        assert not synced.is_set()
    assert synced.is_set()
    engine.close()


# group sync


def test_one_sync_serves_everybody_who_was_written_before_it() -> None:
    started, go, count = threading.Event(), threading.Event(), []

    def slow() -> None:
        count.append(1)
        started.set()
        assert go.wait(30)

    sync = GroupSync(slow, 60)
    first = threading.Thread(target=sync.wait, args=(sync.written(),))
    first.start()
    assert started.wait(30)
    others = [threading.Thread(target=sync.wait, args=(sync.written(),)) for _ in range(8)]
    for thread in others:
        thread.start()
    go.set()
    for thread in (first, *others):
        thread.join(30)
        assert not thread.is_alive()
    assert len(count) == 2


def test_a_sync_that_began_before_a_write_does_not_count_for_it() -> None:
    started, go, served = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        assert go.wait(30)

    sync = GroupSync(slow, 60)
    running = threading.Thread(target=sync.flush)
    sync.written()
    running.start()
    assert started.wait(30)
    ticket = sync.written()
    late = threading.Thread(target=lambda: (sync.wait(ticket), served.set()))
    late.start()
    assert not served.is_set()
    go.set()
    assert served.wait(30)
    running.join()
    late.join()


def test_a_failed_sync_is_final_for_everybody() -> None:
    def broken() -> None:
        raise OSError(28, "no room")

    sync = GroupSync(broken, 0)
    ticket = sync.written()
    for _ in range(2):
        with pytest.raises(RecorderUnavailable, match="no room"):
            sync.wait(ticket)
    with pytest.raises(RecorderUnavailable):
        sync.close()


def test_an_interrupted_sync_leaves_the_turn_to_the_next() -> None:
    interruptions = [KeyboardInterrupt()]

    def interrupted() -> None:
        if interruptions:
            raise interruptions.pop()

    sync = GroupSync(interrupted, 0)
    ticket = sync.written()
    with pytest.raises(KeyboardInterrupt):
        sync.wait(ticket)
    sync.wait(ticket)
    assert sync._synced == ticket


def test_a_sync_with_nothing_to_do_does_nothing() -> None:
    count: list[int] = []
    sync = GroupSync(lambda: count.append(1), 0)
    sync.flush()
    sync.wait(sync.written())
    sync.flush()
    sync.close()
    sync.close()
    assert count == [1]
