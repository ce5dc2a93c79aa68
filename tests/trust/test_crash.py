"""What is left when a process or the disk ends in the middle."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trust.samples import NOW
from trust import Trust
from trust.errors import RecorderUnavailable

KILLS = 20
WRITER = """
import json, sys, threading
from pathlib import Path
from tests.trust.samples import NOW
from trust import Trust
trust = Trust.open(Path(sys.argv[1]))
lock = threading.Lock()
def work(name):
    number = 0
    while True:
        intent = trust.intend("act", None, {"by": name, "n": number}, NOW)
        with trust.transaction():
            document = trust.put_document("done", f"{sys.argv[2]}-{name}-{number}", {"intent": intent}, 0)
            trust.conclude(intent, {}, NOW)
        with lock:
            print(json.dumps([intent, document.id]), flush=True)
        number += 1
for name in range(3):
    threading.Thread(target=work, args=(name,)).start()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


def test_a_killed_process_loses_nothing_it_acknowledged_and_breaks_nothing(tmp_path: Path) -> None:
    chance, acknowledged = random.Random(7), []
    folder = tmp_path / "trust"
    Trust.open(folder).close()
    for round_number in range(KILLS // 2):
        writers = [start(WRITER, str(folder), f"{round_number}{letter}") for letter in "ab"]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()  # it works by now
        time.sleep(chance.uniform(0, 0.05))
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            assert writer.stdout is not None
            with writer.stdout as told:  # not communicate(): it would skip what readline() has buffered
                lines = told.readlines()
            writer.wait(30)
            acknowledged += [json.loads(line) for line in lines if line.endswith("\n")]
        trust = Trust.open(folder)
        assert trust.verify().ok
        _check_effects(trust, acknowledged)
        trust.close()
    assert len(acknowledged) > KILLS


def _check_effects(trust: Trust, acknowledged: list[tuple[int, str]]) -> None:
    """Each acknowledged act is there; each effect has its intent before it, and is there exactly when its intent is concluded."""
    done = {document.body["intent"]: document.id for document in trust.documents("done")}
    records = {record.sequence: record for record in trust.records()}
    for intent, document in acknowledged:
        assert done[intent] == document
    concluded = {record.refers for record in records.values() if record.refers is not None}
    assert set(done) == concluded and all(records[intent].kind == "act" for intent in done)
    assert {record.sequence for record in trust.unconcluded()} == {s for s, record in records.items() if record.refers is None} - concluded


FULL = """
import resource, signal, sys
from pathlib import Path
from tests.trust.samples import NOW
from trust import Trust
from trust.errors import RecorderUnavailable
trust = Trust.open(Path(sys.argv[1]))
for number in range(50):
    trust.intend("before", None, {"n": number}, NOW)
trust.put_document("run", "r", {}, 0)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = (Path(sys.argv[1]) / "trust.db-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
refused = 0
for number in range(20):
    for act in (
        lambda: trust.intend("after", None, {"pad": "x" * 9000}, NOW),
        lambda: trust.put_document("run", "r", {"pad": "x" * 9000}, 1),
        lambda: trust.state("fact", None, {"pad": "x" * 9000}, NOW),
    ):
        try:
            act()
        except RecorderUnavailable:
            refused += 1
assert trust.document("run", "r").version == 1
assert trust.head()[0] == 50
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
trust.intend("room again", None, {}, NOW)
assert trust.verify().ok
print(refused)
"""


def test_a_full_disk_refuses_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    writer = start(FULL, str(tmp_path / "trust"))
    output = writer.communicate(timeout=60)[0]
    assert (writer.returncode, output.strip()) == (0, "60")
    trust = Trust.open(tmp_path / "trust")
    assert trust.head()[0] == 51 and trust.verify().ok
    trust.close()


def test_a_database_that_stays_locked_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trust.engines.sqlite.database._BUSY_SECONDS", 0.05)
    holder, other = Trust.open(tmp_path / "t"), Trust.open(tmp_path / "t")
    with holder.transaction():
        holder.intend("merge", None, {}, NOW)
        with pytest.raises(RecorderUnavailable):
            other.intend("merge", None, {}, NOW)
        assert other.head()[0] == 0
    assert other.head()[0] == 1
    other.intend("merge", None, {}, NOW)
    for trust in (holder, other):
        trust.close()


OPENERS = """
import sys
from pathlib import Path
from tests.trust.samples import NOW
from trust import Trust
sys.stdin.readline()
trust = Trust.open(Path(sys.argv[1]))
for number in range(20):
    trust.conclude(trust.intend("act", None, {}, NOW), {}, NOW)
trust.close()
"""


def test_processes_that_start_at_once_make_one_state(tmp_path: Path) -> None:
    folder = tmp_path / "trust"
    openers = [subprocess.Popen([sys.executable, "-c", OPENERS, str(folder)], stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("go\n")
        opener.stdin.flush()
    for opener in openers:
        opener.communicate(timeout=60)
        assert opener.returncode == 0
    trust = Trust.open(folder)
    assert trust.verify().records == 160 and trust.verify().ok and trust.unconcluded() == []
    assert [path.name for path in (folder / "keys").iterdir()] == ["lease-1.key"]
    trust.close()
