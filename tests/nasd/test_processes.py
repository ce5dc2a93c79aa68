"""Child processes: ready, failed, silent, gone; and one that is taken for no other."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from nasd.processes import Process, birth_of, start_process

CHILD = "tests.nasd.child_process"


def test_a_process_that_is_ready_lives_until_it_is_told_to_end(tmp_path: Path) -> None:
    started = start_process(CHILD, {"does": "wait"}, tmp_path / "log", seconds=20.0)
    assert started.report == {"ready": True, "pid": started.process.pid}
    assert started.process.is_alive()
    started.process.signal(signal.SIGTERM)
    assert started.process.wait_gone(20.0)


def test_the_fault_a_process_reports_is_raised(tmp_path: Path) -> None:
    with pytest.raises(Fault) as caught:
        start_process(CHILD, {"does": "fail"}, tmp_path / "log", seconds=20.0)
    assert (caught.value.kind, caught.value.message) == (Kind.BUSY, "no room")


@pytest.mark.parametrize("does", ["exit", "hang"])
def test_one_that_says_nothing_is_unavailable_and_does_not_stay(tmp_path: Path, does: str) -> None:
    with pytest.raises(Fault) as caught:
        start_process(CHILD, {"does": does, "pid_file": str(tmp_path / "pid")}, tmp_path / "log", seconds=3.0)
    assert caught.value.kind is Kind.UNAVAILABLE
    pid = int((tmp_path / "pid").read_text())
    assert Process(pid, birth_of(pid)).wait_gone(20.0) or birth_of(pid) == 0


def test_a_held_standard_input_ends_with_its_holder(tmp_path: Path) -> None:
    started = start_process(CHILD, {"does": "hold"}, tmp_path / "log", seconds=20.0, hold=True)
    assert started.process.is_alive()
    assert started.stdin is not None
    started.stdin.close()
    assert started.process.wait_gone(20.0)


def test_another_process_with_the_same_number_is_not_taken_for_it() -> None:
    assert Process(os.getpid(), birth_of(os.getpid())).is_alive()
    assert not Process(os.getpid(), birth_of(os.getpid()) - 1).is_alive()
    assert not Process(0, 0).is_alive()
    assert birth_of(2**22 + 1) == 0


def test_the_interpreter_is_the_one_that_runs_the_daemon(tmp_path: Path) -> None:
    started = start_process(CHILD, {"does": "wait"}, tmp_path / "log", seconds=20.0)
    assert os.path.realpath(f"/proc/{started.process.pid}/exe") == os.path.realpath(sys.executable)
    started.process.signal(signal.SIGKILL)
    assert started.process.wait_gone(20.0)
