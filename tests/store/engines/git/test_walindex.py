"""The head of the WAL index changes with every commit of anybody, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engines.git.database import Database
from store.engines.git.walindex import HEAD, WalIndex, count_frames, is_next

_ADD = "INSERT INTO snapshot VALUES (?, x'00', 1)"

ADD_FROM_OUTSIDE = """
import sys
from pathlib import Path
from store.engines.git.database import Database

database = Database(Path(sys.argv[1]))
with database.transaction() as connection:
    connection.execute("INSERT INTO snapshot VALUES ('outside', x'00', 1)")
database.close()
"""

TRY_TO_WRITE = """
import apsw, sys

connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(50)
try:
    connection.execute("begin immediate")
    print("got it")
except apsw.BusyError:
    print("busy")
"""


def add(database: Database, name: str) -> None:
    with database.transaction() as connection:
        connection.execute(_ADD, (name,))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Database, Database]]:
    both = Database(tmp_path / "meta.db"), Database(tmp_path / "meta.db")
    yield both
    for database in both:
        database.close()


def test_the_head_stands_still_until_somebody_commits(pair: tuple[Database, Database]) -> None:
    one, other = pair
    before = one.head()
    assert before is not None
    assert len(before) == HEAD
    one.select("SELECT * FROM branch")
    with other.transaction():
        pass
    assert one.head() == before
    add(other, "a")
    assert one.head() != before


def test_a_commit_of_ones_own_is_told_from_two(pair: tuple[Database, Database]) -> None:
    one, other = pair
    before = one.head()
    add(one, "a")
    between = one.head()
    assert is_next(before, between)
    add(other, "b")
    assert is_next(between, one.head())
    assert not is_next(before, one.head())
    assert not is_next(before, before)


def test_the_count_of_frames_grows_with_the_log(pair: tuple[Database, Database]) -> None:
    one, _ = pair
    before = one.head()
    add(one, "a")
    after = one.head()
    assert before is not None
    assert after is not None
    assert count_frames(after) > count_frames(before)


def test_another_process_s_commit_changes_the_head(pair: tuple[Database, Database], tmp_path: Path) -> None:
    one, _ = pair
    before = one.head()
    subprocess.run([sys.executable, "-c", ADD_FROM_OUTSIDE, str(tmp_path / "meta.db")], check=True, timeout=60)
    assert one.head() != before
    assert one.select("SELECT name FROM snapshot") == [("outside",)]


def test_closing_one_database_drops_no_lock_of_another_on_the_same_file(tmp_path: Path) -> None:
    one, other = Database(tmp_path / "meta.db"), Database(tmp_path / "meta.db")
    with one.transaction() as connection:
        connection.execute(_ADD, ("a",))
        other.close()
        command = [sys.executable, "-c", TRY_TO_WRITE, str(tmp_path / "meta.db")]
        assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "busy\n"
    one.close()


def test_without_an_index_nothing_can_be_told(tmp_path: Path) -> None:
    index = WalIndex(tmp_path / "nothing.db")
    assert index.head() is None
    assert not is_next(index.head(), index.head())
    index.close()
    index.close()
