"""The head of the WAL index changes with every commit of anybody, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trust.engines.sqlite.engine import open_engine
from trust.engines.sqlite.walindex import HEAD, WalIndex
from trust.model import PrincipalKind
from trust.service import Trust


def test_the_head_stands_still_until_somebody_commits(tmp_path: Path) -> None:
    one, other = open_engine(tmp_path), open_engine(tmp_path)
    before = one._database.head()
    assert before is not None
    assert len(before) == HEAD
    one.epoch()
    other.epoch()
    assert one._database.head() == before
    with other.transaction():
        other.bump()
    assert one._database.head() != before
    one.close()
    other.close()


DISABLE = """
import sys
from pathlib import Path
from trust.service import Trust

trust = Trust.open(Path(sys.argv[1]))
trust.disable_principal("someone", 2)
trust.close()
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


def test_another_process_s_change_is_seen_at_the_next_look(tmp_path: Path) -> None:
    trust = Trust.open(tmp_path)
    trust.add_principal("someone", PrincipalKind.AGENT, 1)
    epoch = trust.epoch()
    subprocess.run([sys.executable, "-c", DISABLE, str(tmp_path)], check=True, timeout=60)
    assert trust.epoch() > epoch
    assert trust.principal("someone").disabled
    trust.close()


def test_closing_one_database_drops_no_lock_of_another_on_the_same_file(tmp_path: Path) -> None:
    one, other = open_engine(tmp_path), open_engine(tmp_path)
    with one.transaction():
        one.bump()
        other.close()
        tried = subprocess.run([sys.executable, "-c", TRY_TO_WRITE, str(tmp_path / "trust.db")], capture_output=True, text=True, check=True)
        assert tried.stdout == "busy\n"
    one.close()


def test_without_an_index_every_look_is_a_question(tmp_path: Path) -> None:
    index = WalIndex(tmp_path / "nothing.db")
    assert index.head() is None
    index.close()
