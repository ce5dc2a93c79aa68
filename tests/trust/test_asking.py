"""Gates over the real engine: repeats, restarts, races; and the whole life of many gates against a model of it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from tests.trust.samples import NOW, give_lease, open_trust
from trust import Trust
from trust.errors import AlreadyRefused, GateClosed, GateMismatch, NotEntitled, TooManyQuestions, TrustError, Unknown
from trust.gates import MOST_PENDING, REASK_SECONDS, Question
from trust.model import Ask, Digest, Gate, GateId, GatePhase, GateState, Identity, Principal, PrincipalKind, PrincipalName

OWNER = Identity(Principal(PrincipalName("ana"), PrincipalKind.HUMAN, 0), frozenset({"owner"}))
SECOND = Identity(Principal(PrincipalName("bo"), PrincipalKind.HUMAN, 0), frozenset({"owner"}))
DEADLINE = NOW + 100
USABLE = 50
PROCESSES = 3


def question(number: int = 0, **changes: Any) -> Question:
    asked = Question(
        *(f"proposal:p{number}", {"verb": "merge", "diff": number}, {"what": "merge", "diff": number}),
        *(Ask("owner", DEADLINE - NOW, use_within=USABLE), "big", "coder"),
    )
    return replace(asked, **changes)


def ask(trust: Trust, number: int = 0, **changes: Any) -> Gate:
    return trust.questions.ask(question(number, **changes), ["coder"], NOW)[0]


def approve(trust: Trust, gate: Gate, now: int = NOW + 1) -> Gate:
    return trust.questions.answer(gate.id, gate.digest, True, OWNER, "fine", now)


def test_a_question_is_asked_answered_used_and_closed(trust: Trust) -> None:
    gate, epoch = ask(trust), trust.epoch()
    assert trust.gates(GateState.PENDING) == [gate] and trust.questions.unclosed() == [gate]
    approved = approve(trust, gate)
    assert (approved.state, approved.answered_by, approved.answered, approved.comment) == (GateState.APPROVED, "ana", NOW + 1, "fine")
    assert trust.gate(gate.id) == approved and trust.epoch() > epoch
    used = trust.questions.acknowledge(gate.id, gate.act, NOW + 2)
    closed = trust.questions.close(gate.id, "merged", NOW + 3)
    assert (used.phase, closed.phase, closed.outcome) == (GatePhase.ACKNOWLEDGED, GatePhase.CLOSED, "merged")
    assert trust.gate(gate.id) == closed and not trust.questions.unclosed()
    for act in (
        lambda: trust.questions.acknowledge(gate.id, gate.act, NOW + 4),
        lambda: trust.questions.answer(gate.id, gate.digest, False, OWNER, "", NOW + 4),
        lambda: trust.questions.withdraw(gate.id, "", NOW + 4),
        lambda: trust.questions.supersede(gate.id, "g9", NOW + 4),
    ):
        with pytest.raises(GateClosed, match="already approved by ana and used"):
            act()


def test_the_same_question_of_the_same_run_is_one_question(trust: Trust) -> None:
    first, opened = trust.questions.ask(question(run="r1"), [], NOW)
    assert opened
    assert trust.questions.ask(question(run="r1", card={"what": "again"}), [], NOW + 1) == (first, False)
    assert trust.questions.ask(question(run="r2"), [], NOW)[1] and trust.questions.ask(question(run="r1", rule="small"), [], NOW)[1]
    approve(trust, first)
    assert trust.questions.ask(question(run="r1"), [], NOW + 2)[0].id == first.id
    assert trust.questions.approved("proposal:p0", first_act(), "r1", NOW + 2) == trust.gate(first.id)
    assert trust.questions.approved("proposal:p0", first_act(), "r9", NOW + 2) is None
    trust.questions.acknowledge(first.id, first.act, NOW + 3)
    assert trust.questions.approved("proposal:p0", first_act(), "r1", NOW + 3) is None
    assert trust.questions.ask(question(run="r1"), [], NOW + 4)[1]


def first_act() -> dict[str, Any]:
    return {"verb": "merge", "diff": 0}


def test_what_was_refused_is_not_asked_again_for_an_hour(trust: Trust) -> None:
    gate = ask(trust, run="r1")
    trust.questions.answer(gate.id, gate.digest, False, OWNER, "not this", NOW + 1)
    with pytest.raises(AlreadyRefused, match="ana said no to exactly this: not this"):
        ask(trust, run="r1")
    assert ask(trust, run="r2").id != gate.id
    again, opened = trust.questions.ask(question(run="r1"), [], NOW + 1 + REASK_SECONDS)
    assert opened and again.id != gate.id


def test_a_run_has_only_so_many_questions_waiting(trust: Trust) -> None:
    gates = [ask(trust, number, run="r1") for number in range(MOST_PENDING)]
    with pytest.raises(TooManyQuestions):
        ask(trust, 99, run="r1")
    assert ask(trust, 0, run="r1") == gates[0], "a repeat is no further question"
    assert ask(trust, 99, run="r2")
    trust.questions.withdraw(gates[0].id, "", NOW)
    assert ask(trust, 99, run="r1")


def test_an_answer_or_a_use_for_another_card_does_not_count(trust: Trust) -> None:
    gate, other = ask(trust, 1), ask(trust, 2)
    with pytest.raises(GateMismatch):
        trust.questions.answer(gate.id, other.digest, True, OWNER, "", NOW)
    approve(trust, gate)
    with pytest.raises(GateMismatch):
        trust.questions.acknowledge(gate.id, other.act, NOW + 2)
    assert trust.gate(gate.id).phase is GatePhase.DECIDED
    with pytest.raises(Unknown):
        trust.questions.answer(GateId("g9"), gate.digest, True, OWNER, "", NOW)


def test_a_run_answers_no_question(trust: Trust) -> None:
    gate, (_, secret) = ask(trust), give_lease(trust)
    with pytest.raises(NotEntitled):
        trust.questions.answer(gate.id, gate.digest, True, trust.authenticate(secret, NOW), "", NOW)


def test_time_to_decide_and_time_to_use_end_apart(trust: Trust) -> None:
    early, late = ask(trust, 1), ask(trust, 2)
    assert trust.questions.expire(DEADLINE - 1) == [] and not trust.questions.due(DEADLINE - 1)
    approve(trust, early, DEADLINE - 1)
    with pytest.raises(GateClosed, match="the deadline"):
        approve(trust, late, DEADLINE)
    assert [(gate.id, gate.state) for gate in trust.questions.expire(DEADLINE)] == [(late.id, GateState.EXPIRED)]
    assert trust.questions.expire(DEADLINE) == []
    over = DEADLINE - 1 + USABLE
    assert trust.questions.expire(over - 1) == []
    assert [(gate.id, gate.state) for gate in trust.questions.expire(over)] == [(early.id, GateState.LAPSED)]
    with pytest.raises(GateClosed, match="lapsed"):
        trust.questions.acknowledge(early.id, early.act, over - 1)


def test_a_gate_expires_in_one_process_only(trust: Trust, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, other = ask(trust), Trust.open(tmp_path / "trust")
    real, found = trust._engine.transaction, []

    def overtaken(*, durable: bool = True) -> AbstractContextManager[None]:
        found.extend(other.questions.expire(DEADLINE))
        return real(durable=durable)

    monkeypatch.setattr(trust._engine, "transaction", overtaken)
    assert trust.questions.expire(DEADLINE) == []
    assert [each.id for each in found] == [gate.id]
    other.close()


def reach(trust: Trust, gate: Gate, state: GateState, phase: GatePhase) -> None:
    """Bring a gate to where a test wants it."""
    questions = trust.questions
    if state is GateState.EXPIRED:
        questions.expire(DEADLINE)
    elif state is GateState.WITHDRAWN:
        questions.withdraw(gate.id, "sorry", NOW)
    elif state is GateState.SUPERSEDED:
        questions.supersede(gate.id, "g7", NOW)
    elif state is not GateState.PENDING:
        questions.answer(gate.id, gate.digest, state is not GateState.REJECTED, OWNER, "", NOW)
    if state is GateState.LAPSED:
        questions.expire(NOW + USABLE)
    if phase is GatePhase.ACKNOWLEDGED:
        questions.acknowledge(gate.id, gate.act, NOW)
    if phase is GatePhase.CLOSED:
        questions.close(gate.id, "done", NOW)


PLACES = [
    (GateState.PENDING, GatePhase.PENDING),
    (GateState.APPROVED, GatePhase.ACKNOWLEDGED),
    *((state, phase) for state in GateState if state is not GateState.PENDING for phase in (GatePhase.DECIDED, GatePhase.CLOSED)),
]


@pytest.mark.parametrize(("state", "phase"), PLACES)
def test_a_gate_is_where_it_was_after_a_restart(trust: Trust, tmp_path: Path, state: GateState, phase: GatePhase) -> None:
    gate = ask(trust)
    reach(trust, gate, state, phase)
    before = trust.gate(gate.id)
    trust.close()
    again = Trust.open(tmp_path / "trust")
    assert again.gate(gate.id) == before and (before.state, before.phase) == (state, phase)
    again.close()


def test_a_bypass_covers_while_it_is_live(trust: Trust) -> None:
    epoch = trust.epoch()
    bypass = trust.questions.open_bypass("big", "h1", OWNER, "moving house", 60, NOW)
    assert trust.epoch() > epoch
    assert trust.questions.covering(("big",), "h1", NOW + 59) == (bypass,)
    assert trust.questions.covering(("big",), "h1", NOW + 60) == ()
    epoch = trust.epoch()
    assert trust.questions.end_bypass(bypass.id, NOW + 10) and not trust.questions.end_bypass(bypass.id, NOW + 11)
    assert trust.epoch() > epoch
    assert trust.questions.covering(("big",), "h1", NOW + 20) == () and trust.questions.bypass(bypass.id).ended == NOW + 10
    with pytest.raises(Unknown):
        trust.questions.end_bypass(GateId("b9"), NOW)


# races

ACTS: dict[str, Callable[[Trust, Gate], object]] = {
    "approve": lambda trust, gate: trust.questions.answer(gate.id, gate.digest, True, OWNER, "", DEADLINE - 1),
    "reject": lambda trust, gate: trust.questions.answer(gate.id, gate.digest, False, OWNER, "", DEADLINE - 1),
    "withdraw": lambda trust, gate: trust.questions.withdraw(gate.id, "", DEADLINE - 1),
    "supersede": lambda trust, gate: trust.questions.supersede(gate.id, "g0", DEADLINE - 1),
    "late": lambda trust, gate: trust.questions.answer(gate.id, gate.digest, True, OWNER, "", DEADLINE),
    "stranger": lambda trust, gate: trust.questions.answer(
        gate.id, gate.digest, True, Identity(OWNER.principal, frozenset({"intern"})), "", DEADLINE - 1
    ),
    "other-card": lambda trust, gate: trust.questions.answer(gate.id, Digest("0" * 64), True, OWNER, "", DEADLINE - 1),
    "use": lambda trust, gate: trust.questions.acknowledge(gate.id, gate.act, DEADLINE),
    "other-act": lambda trust, gate: trust.questions.acknowledge(gate.id, Digest("0" * 64), DEADLINE),
}


def race(trust: Trust) -> Counter[str]:
    """Let a thread for each act go over all gates; return how often each act succeeded on each gate."""
    wins: list[str] = []
    gates = list(trust.gates())

    def act(name: str) -> None:
        for gate in gates:
            try:
                ACTS[name](trust, gate)
                wins.append(f"{name} {gate.id}")
            except TrustError:
                continue

    def expire() -> None:
        for _ in gates:
            wins.extend(f"{gate.state.value} {gate.id}" for gate in trust.questions.expire(DEADLINE))

    threads = [threading.Thread(target=act, args=(name,)) for name in (*ACTS, "approve", "use")]
    threads.insert(len(threads) // 2, threading.Thread(target=expire))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(wins)


def race_elsewhere(folder: str) -> None:
    """Race in a process of its own and print what succeeded."""
    trust = Trust.open(Path(folder))
    sys.stdin.readline()
    print(json.dumps(race(trust)))
    trust.close()


def race_everywhere(trust: Trust, folder: Path) -> Counter[str]:
    program = f"from tests.trust.test_asking import race_elsewhere; race_elsewhere({str(folder)!r})"
    others = [
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    wins: Counter[str] = Counter()
    for other in others:
        assert other.stdin is not None
        other.stdin.write("go\n")
        other.stdin.flush()
    wins.update(race(trust))
    for other in others:
        wins.update(json.loads(other.communicate(timeout=60)[0]))
        assert other.returncode == 0
    return wins


def test_threads_and_processes_decide_each_gate_once_and_use_it_once(trust: Trust, tmp_path: Path) -> None:
    gates = [ask(trust, number).id for number in range(25)]
    wins = race_everywhere(trust, tmp_path / "trust")
    for gate in gates:
        happened = {name: wins[f"{name} {gate}"] for name in ("approve", "reject", "expired", "withdraw", "supersede", "use")}
        first = [name for name in ("approve", "reject", "expired") if happened[name]]
        back = [name for name in ("withdraw", "supersede") if happened[name]]
        assert all(count <= 1 for count in happened.values()), (gate, happened)
        assert len(first) <= 1 and len(back) <= 1 and first + back, (gate, happened)
        assert not back or first in ([], ["approve"]), "only what waits or was approved is taken back"
        assert happened["use"] == 0 or (first == ["approve"] and not back), (gate, happened)
        assert trust.gate(gate).phase is (GatePhase.ACKNOWLEDGED if happened["use"] else GatePhase.DECIDED)
    assert not [win for win in wins if win.startswith(("late", "stranger", "other-card", "other-act", "lapsed"))]


def test_askers_in_many_threads_open_one_gate(trust: Trust) -> None:
    opened: list[tuple[str, bool]] = []

    def go() -> None:
        gate, new = trust.questions.ask(question(run="r1"), [], NOW)
        opened.append((gate.id, new))

    threads = [threading.Thread(target=go) for _ in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({gate for gate, _ in opened}) == 1 and [new for _, new in opened].count(True) == 1
    assert len(trust.gates()) == 1


# the whole life, against a model

PEOPLE = (OWNER, SECOND)
moments = st.integers(0, 30)


class Life(RuleBasedStateMachine):
    """Every act in any order on a few gates; what the engine says is what a small model of the rules says."""

    gates = Bundle("gates")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.trust = open_trust(Path(self.folder.name) / "trust")
        self.now = NOW
        self.model: dict[str, dict[str, Any]] = {}
        self.count = 0

    def teardown(self) -> None:
        self.trust.close()
        self.folder.cleanup()

    @rule(seconds=moments)
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @rule(target=gates, approvals=st.integers(1, 2))
    def ask(self, approvals: int) -> Gate:
        self.count += 1
        asked = question(self.count, ask=Ask("owner", 40, approvals=approvals, use_within=25))
        gate, _ = self.trust.questions.ask(asked, ["coder"], self.now)
        self.model[gate.id] = {"state": "pending", "phase": "pending", "by": [], "end": self.now + 40, "need": approvals, "uses": 0}
        return gate

    @rule(gate=gates, who=st.sampled_from(PEOPLE), verdict=st.booleans())
    def answer(self, gate: Gate, who: Identity, verdict: bool) -> None:
        known, name = self.model[gate.id], who.principal.name
        fits = known["state"] == "pending" and self.now < known["end"] and not (verdict and name in known["by"])
        if self.tried(lambda: self.trust.questions.answer(gate.id, gate.digest, verdict, who, "", self.now), fits):
            known["by"].append(name)
            if not verdict or len(known["by"]) == known["need"]:
                known |= {"state": "approved" if verdict else "rejected", "phase": "decided", "until": self.now + 25}

    @rule(gate=gates)
    def use(self, gate: Gate) -> None:
        known = self.model[gate.id]
        fits = (known["state"], known["phase"]) == ("approved", "decided") and self.now < known["until"]
        if self.tried(lambda: self.trust.questions.acknowledge(gate.id, gate.act, self.now), fits):
            known |= {"phase": "acknowledged", "uses": known["uses"] + 1}

    @rule(gate=gates)
    def close(self, gate: Gate) -> None:
        known = self.model[gate.id]
        if self.tried(lambda: self.trust.questions.close(gate.id, "done", self.now), known["phase"] != "pending"):
            known["phase"] = "closed"

    @rule(gate=gates, what=st.sampled_from(["withdrawn", "superseded"]))
    def take_back(self, gate: Gate, what: str) -> None:
        known, questions = self.model[gate.id], self.trust.questions
        act = {"withdrawn": questions.withdraw, "superseded": questions.supersede}[what]
        fits = known["state"] == "pending" or (known["state"], known["phase"]) == ("approved", "decided")
        if self.tried(lambda: act(gate.id, "why", self.now), fits):
            known |= {"state": what, "phase": "decided"}

    @rule()
    def expire(self) -> None:
        ended = {gate.id: gate.state.value for gate in self.trust.questions.expire(self.now)}
        due = {}
        for gate, known in self.model.items():
            if known["state"] == "pending" and self.now >= known["end"]:
                due[gate] = "expired"
            elif (known["state"], known["phase"]) == ("approved", "decided") and self.now >= known["until"]:
                due[gate] = "lapsed"
        assert ended == due
        for gate, state in due.items():
            self.model[gate] |= {"state": state, "phase": "decided"}

    @rule()
    def restart(self) -> None:
        self.trust.close()
        self.trust = Trust.open(Path(self.folder.name) / "trust")

    def tried(self, act: Callable[[], object], fits: bool) -> bool:
        try:
            act()
        except GateClosed:
            assert not fits
            return False
        assert fits
        return True

    @invariant()
    def the_engine_says_what_the_model_says(self) -> None:
        for gate, known in self.model.items():
            found = self.trust.gate(GateId(gate))
            assert (found.state.value, found.phase.value) == (known["state"], known["phase"])
            assert [given.by for given in found.answers] == known["by"]
            assert known["uses"] <= 1
        assert {gate.id for gate in self.trust.questions.unclosed()} == {g for g, known in self.model.items() if known["phase"] != "closed"}


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
