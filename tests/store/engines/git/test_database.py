"""Transactions are whole, seen by others at once, and share their syncs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engines.git.database import SCHEMA_VERSION, Database
from store.errors import StoreError

_ADD = "INSERT INTO snapshot VALUES (?, x'00', 1)"
_COUNT = "SELECT count(*) FROM snapshot"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "meta.db")
    yield made
    made.close()


def test_a_block_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError), database.transaction() as connection:
        connection.execute(_ADD, ("a",))
        raise RuntimeError
    assert database.select_one(_COUNT) == (0,)


def test_another_connection_sees_a_transaction_when_it_ends(database: Database, tmp_path: Path) -> None:
    other = Database(tmp_path / "meta.db")
    with database.transaction() as connection:
        connection.execute(_ADD, ("a",))
        assert other.select_one(_COUNT) == (0,)
    assert other.select_one(_COUNT) == (1,)
    other.close()


def test_a_snapshot_stays_at_its_instant(database: Database) -> None:
    with database.snapshot() as rows:
        rows.execute(_COUNT).fetchall()
        with database.transaction() as connection:
            connection.execute(_ADD, ("a",))
        assert rows.execute(_COUNT).fetchall() == [(0,)]
    assert database.select(_COUNT) == [(1,)]


def test_transactions_of_several_threads_all_happen(database: Database) -> None:
    def add(worker: int) -> None:
        for number in range(50):
            with database.transaction() as connection:
                connection.execute(_ADD, (f"{worker}-{number}",))

    threads = [threading.Thread(target=add, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.select_one(_COUNT) == (200,)


def test_one_sync_serves_everybody_who_asked_before_it_began(tmp_path: Path) -> None:
    syncing, going = threading.Event(), threading.Event()
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            syncs.append(descriptor)
            syncing.set()
            going.wait(30)

    database = Database(tmp_path / "meta.db", sync=sync)
    first = threading.Thread(target=database.flush)
    first.start()
    assert syncing.wait(30)
    others = [threading.Thread(target=database.flush) for _ in range(8)]
    for other in others:
        other.start()
    first.join(0.3)
    going.set()
    for thread in (first, *others):
        thread.join()
    assert 2 <= len(syncs) < 1 + len(others)
    before = len(syncs)
    database.flush()
    assert len(syncs) == before + 1
    database.close()


def test_a_database_of_a_later_release_is_refused(database: Database, tmp_path: Path) -> None:
    with database.transaction() as connection:
        connection.pragma("user_version", SCHEMA_VERSION + 1)
    with pytest.raises(StoreError, match="later release"):
        Database(tmp_path / "meta.db")


def test_a_database_of_the_former_release_is_brought_up_to_date_and_keeps_its_rows(database: Database, tmp_path: Path) -> None:
    columns = [database.select(f"PRAGMA table_info({table})") for table in ("node", "staged", "draft")]
    with database.transaction() as connection:
        connection.execute(
            "DROP TABLE staged; DROP TABLE draft; ALTER TABLE node DROP COLUMN content; ALTER TABLE node DROP COLUMN stamped_ns"
        )
        connection.execute("INSERT INTO node VALUES (1, 5, 1, 420, NULL, 0, 0, 0, 0, NULL, NULL, 77, NULL, NULL, 1, 3, 3)")
        connection.pragma("user_version", 1)
    upgraded = Database(tmp_path / "meta.db")
    assert [upgraded.select(f"PRAGMA table_info({table})") for table in ("node", "staged", "draft")] == columns
    assert upgraded.select("SELECT id, upper, ver, rev, content, stamped_ns FROM node") == [(5, 77, 3, 3, None, None)]
    assert upgraded.select_one("PRAGMA user_version") == (SCHEMA_VERSION,)
    upgraded.close()
