"""``nas run exec``: a command on a branch of its own. The mount is the door's business; here its directory is just a directory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from tests.nasd.cli.conftest import Desk
from tests.nasd.cli.test_verbs import PROPOSAL, RUN

COMMITTED = {"commit": "c" * 40, "branch": "builder/run-1", "changed": 1, "left_out": []}
STEPS = ["run.start", "mount.add", "commit.make", "mount.remove", "proposal.make", "run.end"]


@pytest.fixture
def ready(desk: Desk) -> Desk:
    mount = {"mount": "m", "mountpoint": "/", "branch": "b", "pid": 1, "state": "live"}
    desk.counter.secrets["anl1.secret"] = "the run"
    desk.counter.answers = {
        "run.start": RUN,
        "mount.add": mount,
        "mount.remove": mount,
        "commit.make": COMMITTED,
        "proposal.make": PROPOSAL,
        "run.end": {"run": "run-1", "state": "ended", "commit": None, "left_out": []},
    }
    return desk


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def steps(desk: Desk) -> list[str]:
    return [operation for _, operation, _ in desk.counter.calls]


def test_a_command_runs_inside_and_its_work_is_proposed(ready: Desk) -> None:
    result = ready.nas("run", "exec", "builder", "--purpose", "tidy", "-m", "tidy up", "--json", *python(""))
    assert result.code == 0
    assert steps(ready) == STEPS
    who = {operation: principal for principal, operation, _ in ready.counter.calls}
    assert {name for name, principal in who.items() if principal == "the run"} == {"commit.make", "proposal.make"}
    asked = {operation: arguments for _, operation, arguments in ready.counter.calls}
    assert asked["proposal.make"] == {"run": "run-1", "message": "tidy up"}
    assert not Path(asked["mount.add"]["mountpoint"]).exists()
    assert result.document["proposal"]["decision"] == "merged"
    assert "secret" not in result.document


def test_the_environment_of_a_command_is_clean(ready: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do not leak")
    monkeypatch.setenv("NAS_TOKEN", "nat1.owner.secret")
    monkeypatch.setenv("WANTED", "yes")
    seen = tmp_path / "seen"
    code = f"import os, json; json.dump([os.getcwd(), os.listdir(os.environ['HOME']), dict(os.environ)], open({str(seen)!r}, 'w'))"
    ready.nas("run", "exec", "builder", "--env", "WANTED", *python(code))
    cwd, home, environment = json.loads(seen.read_text())
    assert cwd == {operation: arguments for _, operation, arguments in ready.counter.calls}["mount.add"]["mountpoint"]
    assert home == []
    assert environment["NAS_RUN"] == "run-1"
    assert environment["NAS_BRANCH"] == "builder/run-1"
    assert environment["NAS_LEASE"] == "anl1.secret"
    assert environment["WANTED"] == "yes"
    assert not {"AWS_SECRET_ACCESS_KEY", "NAS_TOKEN"} & environment.keys()


@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 15)", 143)])
def test_a_command_that_fails_is_committed_and_not_proposed(ready: Desk, code: str, expected: int) -> None:
    result = ready.nas("run", "exec", "builder", *python(code))
    assert result.code == expected
    assert steps(ready) == [step for step in STEPS if step != "proposal.make"]
    assert "not proposed" in result.out


def test_a_command_is_told_first_when_we_are_told_to_end(ready: Desk) -> None:
    code = "import os, signal, time; os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
    assert ready.nas("run", "exec", "builder", *python(code)).code == 143
    assert steps(ready)[-2:] == ["mount.remove", "run.end"]


def test_a_command_that_is_not_there_ends_the_run(ready: Desk) -> None:
    result = ready.nas("run", "exec", "builder", "--", "/no/such/program")
    assert result.code == 127
    assert steps(ready)[-1] == "run.end"
    assert "/no/such/program" in result.err


@pytest.mark.parametrize(("decision", "expected"), [("gated", 4), ("refused", 3), ("conflict", 5)])
def test_the_decision_is_the_exit_code(ready: Desk, decision: str, expected: int) -> None:
    ready.counter.answers["proposal.make"] = {**PROPOSAL, "decision": decision, "state": decision, "gate": "gate-1"}
    assert ready.nas("run", "exec", "builder", *python("")).code == expected


def test_nothing_changed_is_nothing_proposed(ready: Desk) -> None:
    ready.counter.answers["commit.make"] = {**COMMITTED, "changed": 0}
    assert ready.nas("run", "exec", "builder", *python("")).code == 0
    assert "proposal.make" not in steps(ready)
    ready.counter.answers["commit.make"] = COMMITTED
    ready.counter.calls.clear()
    assert ready.nas("run", "exec", "builder", "--no-propose", *python("")).code == 0
    assert "proposal.make" not in steps(ready)


@pytest.mark.parametrize("failing", ["mount.add", "commit.make", "proposal.make"])
def test_what_was_started_is_ended_whatever_fails(ready: Desk, failing: str) -> None:
    ready.counter.answers[failing] = Fault(Kind.DENIED, "no")
    assert ready.nas("run", "exec", "builder", *python("")).code == 3
    done = steps(ready)
    assert done[-1] == "run.end"
    assert ("mount.remove" in done) == (failing != "mount.add")


def test_the_output_of_a_command_is_not_mixed_with_the_document(ready: Desk) -> None:
    result = ready.nas("run", "exec", "builder", "--json", *python("print('talk')"))
    assert result.document["exit"] == 0
    assert "talk" in result.err
