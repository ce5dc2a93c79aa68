"""T25: somebody with the files changes what the record says. CVE-2022-36111 (immudb checked only the ends)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from interfaces.faults import Fault
from nasd.runs import MAIN
from store.errors import StoreError
from tests.nasd.conftest import build_house
from tests.trust.samples import NOW, open_trust
from trust import Trust
from trust.chain import row_hash
from trust.checkpoints import Checkpoint
from trust.errors import ChainBroken, TrustError

RECORDS = 40


@pytest.fixture
def trust(tmp_path: Path) -> Iterator[Trust]:
    opened = open_trust(tmp_path / "t")
    for number in range(RECORDS):
        opened.state("seen", None, {"n": number}, NOW + number)
    opened.evidence.checkpoint(NOW + RECORDS)
    yield opened
    opened.close()


def tamper(folder: Path) -> apsw.Connection:
    connection = apsw.Connection(str(folder / "trust.db"))
    for (name,) in list(connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA foreign_keys=OFF")
    return connection


DAMAGE = {
    "a flipped byte": "UPDATE records SET body = replace(body, '1', '2') WHERE sequence = 20",
    "another time": "UPDATE records SET time = time + 1 WHERE sequence = 20",
    "another principal": "UPDATE records SET principal = 'ana' WHERE sequence = 20",
    "a dropped record": "DELETE FROM records WHERE sequence = 20",
    "a dropped head": "DELETE FROM records WHERE sequence <= 20",
    "a swap": "UPDATE records SET sequence = CASE sequence WHEN 20 THEN -1 WHEN 21 THEN 20 ELSE sequence END WHERE sequence IN (20, 21)",
    "a dropped tail": f"DELETE FROM records WHERE sequence > {RECORDS - 3}",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_first_bad_record_is_named_and_nothing_is_added_after_it(trust: Trust, tmp_path: Path, damage: str) -> None:
    assert trust.verify().ok
    connection = tamper(tmp_path / "t")
    connection.execute(DAMAGE[damage])
    connection.close()
    found = trust.verify()
    assert not found.ok and found.first_bad is not None and found.why
    with pytest.raises(ChainBroken):
        trust.state("seen", None, {}, NOW)


def test_a_suffix_made_anew_with_every_hash_is_caught_by_the_signed_head(trust: Trust, tmp_path: Path) -> None:
    size = trust.head()[0]
    outside = Checkpoint(trust.evidence.verifier.name, size, trust.evidence.root_at(size))
    connection = tamper(tmp_path / "t")
    rows = list(connection.execute("SELECT * FROM records WHERE sequence >= 20 ORDER BY sequence"))
    previous = rows[0][9]
    for at, row in enumerate(rows):
        changed = (*row[:8], '{"n":"forged"}' if at == 0 else row[8], previous, b"", row[11])
        previous = row_hash(changed)
        connection.execute(
            "UPDATE records SET body = ?, previous = ?, hash = ? WHERE sequence = ?", (changed[8], changed[9], previous, row[0])
        )
    connection.execute("DELETE FROM tree")
    connection.close()
    again = Trust.open(tmp_path / "t")
    assert not again.verify().ok
    assert not again.verify(None, [("the witness", outside)]).ok
    again.close()


def test_the_running_program_changes_and_deletes_no_record(trust: Trust, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "t" / "trust.db"))
    connection.execute("PRAGMA recursive_triggers=on")
    for statement in (
        "UPDATE records SET body = '{}' WHERE sequence = 5",
        "DELETE FROM records WHERE sequence = 5",
        "INSERT OR REPLACE INTO records SELECT * FROM records WHERE sequence = 5",
    ):
        with pytest.raises(apsw.ConstraintError):
            connection.execute(statement)
    connection.close()
    assert trust.verify().ok


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own that is nearly full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
def test_where_no_record_can_be_written_nothing_happens(small_disk: Path) -> None:
    house = build_house(small_disk / "home", "git")
    house.start()
    filler = small_disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    started = 0
    with pytest.raises((OSError, TrustError, StoreError, Fault)):
        while started < 2000:
            house.start()
            started += 1
    runs = house.runs.all()
    filler.unlink()
    branches = {branch.name for branch in house.appliance.engine.branches()} - {MAIN}
    assert branches == {run.branch for run in runs}, "something happened that has no run"
    assert house.trust.verify().ok
    house.start()  # with room, work goes on
    house.appliance.close()
