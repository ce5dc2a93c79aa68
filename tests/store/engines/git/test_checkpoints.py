"""The log goes into the database file while transactions go on, and starts over."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from store.engines.git import checkpoints
from store.engines.git.database import Database
from store.engines.git.walindex import count_frames

_ADD = "INSERT INTO snapshot VALUES (?, zeroblob(3000), 1)"


def count(database: Database) -> int:
    head = database.head()
    assert head is not None
    return count_frames(head)


def fill(database: Database, names: range) -> None:
    for name in names:
        with database.transaction() as connection:
            connection.execute(_ADD, (str(name),))


def test_a_log_that_was_moved_starts_over(tmp_path: Path) -> None:
    database = Database(tmp_path / "meta.db")
    fill(database, range(50))
    before = count(database)
    database.checkpoint()
    fill(database, range(50, 51))
    assert count(database) < before
    assert database.select("SELECT count(*) FROM snapshot") == [(51,)]
    database.close()


def test_a_log_that_grew_is_moved_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PAGES", 50)
    database = Database(tmp_path / "meta.db")
    for start in range(0, 600, 20):
        fill(database, range(start, start + 20))
        for thread in threading.enumerate():
            if thread.name == "checkpoint":
                thread.join()
    assert count(database) < 600
    assert database.select("SELECT count(*) FROM snapshot") == [(600,)]
    database.close()


def test_writers_go_on_while_the_log_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PAGES", 50)
    database = Database(tmp_path / "meta.db")
    threads = [threading.Thread(target=fill, args=(database, range(start, start + 300))) for start in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    with_everything = apsw.Connection(str(tmp_path / "meta.db"))
    assert with_everything.execute("SELECT count(*) FROM snapshot").fetchone() == (600,)
    assert with_everything.pragma("integrity_check") == "ok"
    with_everything.close()


def test_a_log_that_somebody_still_reads_stays_and_nothing_is_lost(tmp_path: Path) -> None:
    database, other = Database(tmp_path / "meta.db"), Database(tmp_path / "meta.db")
    fill(database, range(10))
    with other.snapshot() as rows:
        rows.execute("SELECT count(*) FROM snapshot").fetchall()
        fill(database, range(10, 20))
        database.checkpoint()
        assert rows.execute("SELECT count(*) FROM snapshot").fetchall() == [(10,)]
    assert other.select("SELECT count(*) FROM snapshot") == [(20,)]
    database.close()
    other.close()
