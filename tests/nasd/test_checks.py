"""Checks run the proposal's own code, so they get nothing but the proposal."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nasd.checks import Check, CheckResult, find_trouble, run_checks, summarise
from nasd.runs import MAIN
from tests.nasd.conftest import House

TROUBLE = find_trouble(Path("/tmp"))
isolated = pytest.mark.skipif(bool(TROUBLE), reason=f"nothing can be isolated here: {TROUBLE}")


def run(house: House, *command: str, timeout: float = 30) -> CheckResult:
    head = house.appliance.engine.branch(MAIN).head
    check = Check("it", command, timeout, required=True)
    (result,) = run_checks(house.appliance.engine, head, [check], house.appliance.settings.run / "checks")
    return result


@isolated
def test_a_check_runs_over_exactly_the_proposed_tree(house: House) -> None:
    result = run(house, "sh", "-c", "cat README.md && ls src")
    assert (result.state, result.output) == ("passed", "hello\na.py\nb.py\n")


@isolated
def test_a_failing_check_fails_and_keeps_the_end_of_what_it_said(house: House) -> None:
    result = run(house, "sh", "-c", "echo broken; exit 3")
    assert (result.state, result.output) == ("failed", "broken\n")


@isolated
def test_a_check_sees_the_tree_and_nothing_else(house: House) -> None:
    home = house.appliance.settings.home
    script = (
        f"test ! -e {home} && test ! -e /root && test ! -e /home && test ! -e /var && "
        "test $(ls /proc | grep -c '^[0-9]') -lt 6 && "
        "test $(grep -c : /proc/net/dev) -le 1 && "
        'test "$(env | cut -d= -f1 | grep -v "^_$" | sort | tr "\\n" " ")" = "CI HOME LANG NAS_CHECK PATH PWD TMPDIR "'
    )
    result = run(house, "sh", "-xc", script)
    assert result.state == "passed", result.output


@isolated
def test_a_check_changes_nothing_but_its_copy(house: House) -> None:
    assert run(house, "sh", "-c", "echo changed > README.md && ! touch /usr/x 2>/dev/null").state == "passed"
    assert house.read_main("README.md") == b"hello\n"


@isolated
def test_a_check_ends_with_its_time_and_everything_it_started(house: House) -> None:
    mark = f"{1000 + os.getpid() + time.monotonic():.6f}"
    assert run(house, "sh", "-c", f"sleep {mark} & sleep {mark}", timeout=0.5).state == "timeout"
    deadline = time.monotonic() + 20
    while any(mark.encode() in _read(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
        assert time.monotonic() < deadline, "what the check started is still running"
        time.sleep(0.05)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_nothing_of_a_check_stays_on_the_disk(house: House) -> None:
    run(house, "true")
    assert list((house.appliance.settings.run / "checks").iterdir()) == []


@isolated
def test_a_program_that_is_not_there_is_a_failed_check(house: House) -> None:
    result = run(house, "no-such-program")
    assert result.state == "failed"
    assert "no-such-program" in result.output


def test_where_nothing_can_be_isolated_a_check_is_impossible_and_does_not_run(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nasd.checks.find_trouble", lambda _: "no namespaces here")
    result = run(house, "sh", "-c", "echo it ran")
    assert (result.state, result.output) == ("impossible", "no namespaces here")
    assert summarise([result]) == "failed"


def test_only_required_checks_count() -> None:
    passed, failed = CheckResult("a", "passed", True, 0, ""), CheckResult("b", "failed", False, 0, "")
    assert summarise([]) == "none"
    assert summarise([passed, failed]) == "passed"
    assert summarise([passed, CheckResult("c", "timeout", True, 0, "")]) == "failed"
    assert summarise([CheckResult("c", "impossible", True, 0, "")]) == "failed"
