"""Gates over the real engine: races, restarts, deadlines."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.trust.samples import NOW, give_lease
from trust import Trust
from trust.errors import GateClosed, GateMismatch, NotEntitled, TrustError, Unknown
from trust.gates import card_digest
from trust.model import Gate, GateId, GateState, Identity, Principal, PrincipalKind, PrincipalName

OWNER = Identity(Principal(PrincipalName("ana"), PrincipalKind.HUMAN, 0), frozenset({"owner"}))
DEADLINE = NOW + 100
PROCESSES = 3


def ask(trust: Trust, number: int = 0) -> Gate:
    return trust.open_gate(f"proposal-{number}", {"what": "merge", "diff": number}, "owner", DEADLINE, "reject", "coder", NOW)


def test_a_question_is_asked_answered_and_used_once(trust: Trust) -> None:
    gate, epoch = ask(trust), trust.epoch()
    assert gate.digest == card_digest(gate.card) and trust.gates(GateState.PENDING) == [gate]
    approved = trust.answer_gate(gate.id, gate.digest, True, OWNER, "fine", NOW + 1)
    assert (approved.state, approved.answered_by, approved.answered, approved.comment) == (GateState.APPROVED, "ana", NOW + 1, "fine")
    assert trust.gate(gate.id) == approved and trust.epoch() > epoch
    assert trust.consume_gate(gate.id, gate.digest, NOW + 999).state is GateState.CONSUMED
    for act in (
        lambda: trust.consume_gate(gate.id, gate.digest, NOW),
        lambda: trust.answer_gate(gate.id, gate.digest, False, OWNER, "", NOW),
        lambda: trust.withdraw_gate(gate.id, "", NOW),
    ):
        with pytest.raises(GateClosed, match="already consumed by ana"):
            act()


def test_a_rejection_can_not_be_used(trust: Trust) -> None:
    gate = ask(trust)
    assert trust.answer_gate(gate.id, gate.digest, False, OWNER, "no", NOW).state is GateState.REJECTED
    with pytest.raises(GateClosed, match="already rejected by ana"):
        trust.consume_gate(gate.id, gate.digest, NOW)


def test_an_answer_or_a_use_for_another_card_does_not_count(trust: Trust) -> None:
    gate, other = ask(trust, 1), ask(trust, 2)
    with pytest.raises(GateMismatch):
        trust.answer_gate(gate.id, other.digest, True, OWNER, "", NOW)
    trust.answer_gate(gate.id, gate.digest, True, OWNER, "", NOW)
    with pytest.raises(GateMismatch):
        trust.consume_gate(gate.id, other.digest, NOW)
    assert trust.gate(gate.id).state is GateState.APPROVED
    with pytest.raises(Unknown):
        trust.answer_gate(GateId("g9"), gate.digest, True, OWNER, "", NOW)


def test_a_run_answers_no_question(trust: Trust) -> None:
    gate, (_, secret) = ask(trust), give_lease(trust)
    with pytest.raises(NotEntitled):
        trust.answer_gate(gate.id, gate.digest, True, trust.authenticate(secret, NOW), "", NOW)


def test_the_deadline_is_the_first_moment_that_is_too_late(trust: Trust) -> None:
    early, late = ask(trust, 1), ask(trust, 2)
    assert trust.expire_gates(DEADLINE - 1) == []
    trust.answer_gate(early.id, early.digest, True, OWNER, "", DEADLINE - 1)
    with pytest.raises(GateClosed, match="the deadline"):
        trust.answer_gate(late.id, late.digest, True, OWNER, "", DEADLINE)
    assert [(gate.id, gate.state) for gate in trust.expire_gates(DEADLINE)] == [(late.id, GateState.EXPIRED)]
    assert trust.expire_gates(DEADLINE) == []
    assert [trust.gate(gate.id).state for gate in (early, late)] == [GateState.APPROVED, GateState.EXPIRED]
    with pytest.raises(GateClosed, match="already expired"):
        trust.answer_gate(late.id, late.digest, True, OWNER, "", DEADLINE - 1)


def test_a_gate_expires_in_one_process_only(trust: Trust, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, other = ask(trust), Trust.open(tmp_path / "trust")
    real, found = trust._engine.transaction, []

    def overtaken(*, durable: bool = True) -> AbstractContextManager[None]:
        found.extend(other.expire_gates(DEADLINE))
        return real(durable=durable)

    monkeypatch.setattr(trust._engine, "transaction", overtaken)
    assert trust.expire_gates(DEADLINE) == []
    assert [each.id for each in found] == [gate.id]
    other.close()


def test_a_question_can_be_taken_back_until_it_is_used(trust: Trust) -> None:
    pending, approved = ask(trust, 1), ask(trust, 2)
    trust.answer_gate(approved.id, approved.digest, True, OWNER, "", NOW)
    for gate in (pending, approved):
        assert trust.withdraw_gate(gate.id, "branch moved", NOW).comment == "branch moved"
        with pytest.raises(GateClosed):
            trust.consume_gate(gate.id, gate.digest, NOW)


@pytest.mark.parametrize("state", [GateState.PENDING, GateState.APPROVED, GateState.REJECTED, GateState.EXPIRED, GateState.CONSUMED])
def test_a_gate_is_where_it_was_after_a_restart(trust: Trust, tmp_path: Path, state: GateState) -> None:
    gate = ask(trust)
    if state is GateState.EXPIRED:
        trust.expire_gates(DEADLINE)
    elif state is not GateState.PENDING:
        trust.answer_gate(gate.id, gate.digest, state is not GateState.REJECTED, OWNER, "", NOW)
    if state is GateState.CONSUMED:
        trust.consume_gate(gate.id, gate.digest, NOW)
    before = trust.gate(gate.id)
    trust.close()
    again = Trust.open(tmp_path / "trust")
    assert again.gate(gate.id) == before and before.state is state
    again.close()


# races

ACTS: dict[str, Callable[[Trust, Gate], object]] = {
    "approve": lambda trust, gate: trust.answer_gate(gate.id, gate.digest, True, OWNER, "", DEADLINE - 1),
    "reject": lambda trust, gate: trust.answer_gate(gate.id, gate.digest, False, OWNER, "", DEADLINE - 1),
    "late": lambda trust, gate: trust.answer_gate(gate.id, gate.digest, True, OWNER, "", DEADLINE),
    "stranger": lambda trust, gate: trust.answer_gate(
        gate.id, gate.digest, True, Identity(OWNER.principal, frozenset({"intern"})), "", DEADLINE - 1
    ),
    "other-card": lambda trust, gate: trust.answer_gate(gate.id, card_digest({}), True, OWNER, "", DEADLINE - 1),
    "consume": lambda trust, gate: trust.consume_gate(gate.id, gate.digest, DEADLINE),
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
            wins.extend(f"expire {gate.id}" for gate in trust.expire_gates(DEADLINE))

    threads = [threading.Thread(target=act, args=(name,)) for name in (*ACTS, "approve", "consume")]
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


def test_threads_and_processes_decide_each_gate_once(trust: Trust, tmp_path: Path) -> None:
    gates = [ask(trust, number).id for number in range(25)]
    program = f"from tests.trust.test_asking import race_elsewhere; race_elsewhere({str(tmp_path / 'trust')!r})"
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
    for gate in gates:
        decisions = [name for name in ("approve", "reject", "expire") for _ in range(wins[f"{name} {gate}"])]
        assert len(decisions) == 1, (gate, decisions)
        assert wins[f"consume {gate}"] <= (decisions == ["approve"])
        expected = {"approve": {GateState.APPROVED, GateState.CONSUMED}, "reject": {GateState.REJECTED}, "expire": {GateState.EXPIRED}}
        assert trust.gate(gate).state in expected[decisions[0]]
    assert not [win for win in wins if win.startswith(("late", "stranger", "other-card"))]
