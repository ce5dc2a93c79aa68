"""The process dies at any step of a gate's life: asked, answered, taken over, carried out, closed. It is resolved once, and as answered."""

from __future__ import annotations

import os
import random
import shutil
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trust.questions as questions
import trust.service as service
from nasd.config import Settings
from nasd.runs import MAIN
from nasd.wiring import Appliance
from store import open_store
from store.engines.git.steps import watch_steps
from tests.nasd.conftest import START, House, build_house
from trust.errors import GateClosed
from trust.model import GatePhase, GateState
from trust.service import Trust

ASKED = {".nas/note.txt": b"this asks\n"}
STATES = {
    "approve": GateState.APPROVED,
    "reject": GateState.REJECTED,
    "withdraw": GateState.WITHDRAWN,
    "move": GateState.SUPERSEDED,
    "wait": GateState.EXPIRED,
}


def reopen(home: Path) -> House:
    settings = Settings(home=home)
    now = [START]
    return House(Appliance(settings, open_store(settings.store, "git"), Trust.open(settings.trust), lambda: now[0], os.urandom), now)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with a run whose work asks people."""
    home = tmp_path_factory.mktemp("prepared") / "home"
    house = build_house(home, "git")
    run, _ = house.start()
    house.write(run, ASKED)
    house.runs.commit(run, house.owner, "work")
    house.appliance.close()
    return home


def live(house: House, verdict: str, say: Callable[[str], None]) -> None:
    """Take a gate from the question to its end."""
    run = house.runs.all()[0]
    document = house.proposals.propose(run, house.owner, "please")
    say(f"asked {document['gate']}")
    gate = house.trust.gate(document["gate"])
    if verdict in {"approve", "reject"}:
        house.gates.answer(gate.id, gate.digest, house.owner, "", approve=verdict == "approve")
    elif verdict == "withdraw":
        house.gates.withdraw(gate, house.owner, "sorry")
    elif verdict == "move":
        house.write(run, {"more.txt": b"more"})
        house.runs.commit(run, house.owner, "more")
        house.pass_time(1)
        house.gates.tick()
    else:
        house.pass_time(86400)
        house.gates.tick()
    say("ended")


def count_steps(step: Callable[[], None]) -> None:
    """Have `step` called around everything durable."""

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            step()
            try:
                return function(*arguments, **more)
            finally:
                step()

        return call

    watch_steps(lambda _: step())
    for name in ("fsync", "fdatasync"):
        setattr(os, name, counted(getattr(os, name)))
    for name in ("intend", "conclude", "put_document", "state"):
        setattr(service.Trust, name, counted(getattr(service.Trust, name)))
    for name in ("ask", "answer", "acknowledge", "close", "withdraw", "supersede", "expire"):
        setattr(questions.Questions, name, counted(getattr(questions.Questions, name)))


def die_at(home: Path, verdict: str, limit: int) -> tuple[list[str], bool]:
    """Live a gate's life in a process that kills itself at a step; return what it said, and whether it died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _live_and_die(home, verdict, limit, writer)
    os.close(writer)
    with os.fdopen(reader) as reports:
        said = reports.read().splitlines()
    _, status = os.waitpid(child, 0)
    died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert died or status == 0, said
    return said, died


def _live_and_die(home: Path, verdict: str, limit: int, writer: int) -> None:
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count == limit:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        house = reopen(home)
        count_steps(step)
        live(house, verdict, lambda text: os.write(writer, f"{text}\n".encode()) and None)
    except BaseException:
        os.write(writer, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


def check(home: Path, verdict: str, said: list[str]) -> None:
    """What was said is so, nothing is left open, and the life can be finished with the same end."""
    house = reopen(home)
    if verdict == "wait" and said:
        house.pass_time(86400)
    house.reconciliation.finish()
    house.gates.tick()
    assert house.trust.unconcluded() == [] and house.trust.verify().ok
    assert all(gate.phase is GatePhase.PENDING for gate in house.trust.questions.unclosed()), "what was decided is carried out"
    gates = house.trust.gates()
    assert len(gates) <= 2
    if said:
        assert gates[0].id == said[0].removeprefix("asked ")
    if "ended" in said:
        assert gates[0].state is STATES[verdict] and gates[0].phase is GatePhase.CLOSED
    if not gates or gates[0].state is GateState.PENDING:
        live(house, verdict, lambda _: None)
    ended = house.trust.gates()[0]
    assert (ended.state, ended.phase) == (STATES[verdict], GatePhase.CLOSED)
    with pytest.raises(GateClosed):
        house.trust.questions.answer(ended.id, ended.digest, False, house.owner, "", house.appliance.now())
    merges = [commit for commit in house.appliance.engine.log(house.appliance.engine.branch(MAIN).head) if commit.note.provenance.proposal]
    assert len(merges) == (verdict == "approve")
    assert {proposal.state for proposal in house.proposals.all()} <= {"merged", "refused", "withdrawn", "stale", "gated"}
    house.appliance.close()


@pytest.mark.slow
@pytest.mark.parametrize("verdict", STATES)
def test_a_gate_survives_death_at_every_step_and_is_resolved_once(prepared: Path, tmp_path: Path, verdict: str, thorough: bool) -> None:
    """Count up, by one with ``--thorough``, else in strides from a random start."""
    stride = 1 if thorough else 13
    limit, rounds = random.randrange(1, stride + 1), 0
    while True:
        home = tmp_path / str(limit)
        shutil.copytree(prepared, home)
        said, died = die_at(home, verdict, limit)
        check(home, verdict, said)
        shutil.rmtree(home)
        if not died:
            break
        limit += stride
        rounds += 1
    assert rounds >= 2 and said[-1] == "ended", "the life has more steps than that"
