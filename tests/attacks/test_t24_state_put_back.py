"""T24: a state that was cut off, or put back. The WAL-reset bug of SQLite; a database restored from an old copy."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import apsw

from tests.trust.samples import NOW, open_trust
from trust import Trust
from trust.checkpoints import Checkpoint

WRITER = """
import sys
from pathlib import Path
from trust import Trust
trust = Trust.open(Path(sys.argv[1]))
number = trust.head()[0]
while True:
    number += 1
    trust.intend("seen", None, {"n": number}, number)
    print(number, flush=True)
"""


def test_what_was_acknowledged_is_there_however_often_the_writer_is_killed(tmp_path: Path) -> None:
    open_trust(tmp_path / "t").close()
    acknowledged = 0
    for round_ in range(6):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "t")], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        for _ in range(5 + round_):
            acknowledged = int(writer.stdout.readline())
        time.sleep(0.003 * round_)
        os.kill(writer.pid, signal.SIGKILL)
        with writer.stdout:
            rest = writer.stdout.read().split("\n")
        acknowledged = max([acknowledged, *(int(line) for line in rest[:-1] if line)])
        writer.wait()
        trust = Trust.open(tmp_path / "t")
        assert trust.head()[0] >= acknowledged
        assert trust.verify().ok
        trust.close()


def test_an_old_copy_is_sound_in_itself_and_caught_by_what_was_kept_elsewhere(tmp_path: Path) -> None:
    trust = open_trust(tmp_path / "t")
    for number in range(5):
        trust.state("seen", None, {"n": number}, NOW)
    trust.close()
    shutil.copytree(tmp_path / "t", tmp_path / "old")
    trust = Trust.open(tmp_path / "t")
    trust.state("denied", None, {"what": "the attack"}, NOW)
    size = trust.head()[0]
    outside = Checkpoint(trust.evidence.verifier.name, size, trust.evidence.root_at(size))
    trust.close()
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "old", tmp_path / "t")
    trust = Trust.open(tmp_path / "t")
    assert trust.verify().ok, "by itself an old copy is as good as it was"
    found = trust.verify(None, [("the witness", outside)])
    assert not found.ok and found.first_bad == size
    trust.close()


def test_the_engine_is_one_without_the_bug() -> None:
    assert tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) >= (3, 51, 3)
    assert sqlite3.sqlite_version, "the other SQLite of this interpreter is not the one that the state is written with"
