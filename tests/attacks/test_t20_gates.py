"""T20: a yes that is used for something else. CVE-2026-33068, CVE-2025-59536, CVE-2026-25724; approvals given in fatigue."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.faults import Fault
from nasd.runs import MAIN
from tests.nasd.conftest import House, build_house
from trust.errors import AlreadyAnswered, GateClosed, GateMismatch, NotEntitled, TrustError
from trust.model import Gate, GateId, GateState, Identity, PrincipalKind, PrincipalName
from trust.policy import default_policy

MANY = {f"many/{number}.txt": b"x" for number in range(201)}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", "git")
    yield built
    built.appliance.close()


def gated(house: House, files: dict[str, bytes | None] | None = None) -> tuple[object, Gate]:
    run, _ = house.start()
    house.write(run, files or dict(MANY))
    document = house.proposals.propose(run, house.owner, "work")
    return run, house.trust.gate(GateId(str(document["gate"])))


def test_what_changes_after_the_card_is_not_let_in_by_its_answer(house: House) -> None:
    run, gate = gated(house)
    house.write(run, {"many/0.txt": b"a back door\n"})  # type: ignore[arg-type]
    house.runs.commit(run, house.owner, "later")  # type: ignore[arg-type]
    before = house.appliance.engine.branch(MAIN).head
    with pytest.raises(GateClosed):
        house.gates.answer(gate.id, gate.digest, house.owner, "", approve=True)
    assert house.appliance.engine.branch(MAIN).head == before
    assert house.records("gate.superseded")


def test_an_answer_to_one_card_answers_no_other(house: House) -> None:
    _, one = gated(house)
    _, other = gated(house, MANY | {"evil.txt": b"x"})  # type: ignore[operator]
    with pytest.raises(GateMismatch):
        house.gates.answer(other.id, one.digest, house.owner, "", approve=True)
    house.gates.answer(one.id, one.digest, house.owner, "", approve=True)
    assert house.trust.gate(other.id).state is GateState.PENDING


def test_whoever_asks_answers_nothing(house: House) -> None:
    run, secret = house.start()
    house.write(run, dict(MANY))
    document = house.proposals.propose(run, house.owner, "work")
    gate = house.trust.gate(GateId(str(document["gate"])))
    holder = house.holder(secret)
    agent = Identity(holder.principal, frozenset({"owner"}))  # also one that came by the role
    for identity in (holder, agent):
        with pytest.raises((NotEntitled, Fault, TrustError)):
            house.gates.answer(gate.id, gate.digest, identity, "", approve=True)
    assert house.trust.gate(gate.id).state is GateState.PENDING


def test_a_rule_that_wants_somebody_else_is_not_answered_by_whom_the_run_works_for(tmp_path: Path) -> None:
    text = default_policy().replace("id: many-files-ask\n", "id: many-files-ask\n    independent: true\n")
    house = build_house(tmp_path / "independent", "git", text)
    other = house.trust.add_principal(PrincipalName("bo"), PrincipalKind.HUMAN, 0, {"roles": "owner"})
    _, gate = gated(house)
    with pytest.raises(NotEntitled):
        house.gates.answer(gate.id, gate.digest, house.owner, "", approve=True)
    assert house.trust.gate(gate.id).state is GateState.PENDING
    house.gates.answer(gate.id, gate.digest, Identity(other, house.trust.roles(other)), "", approve=True)
    assert house.trust.gate(gate.id).state is GateState.APPROVED
    house.appliance.close()


def test_the_file_that_is_judged_does_not_configure_the_judge(house: House) -> None:
    """A proposal that takes the question out of the policy is asked about by the policy as it is."""
    run, _ = house.start()
    loose = default_policy().replace("at_least: 201", "at_least: 99999")
    assert loose != default_policy()
    house.write(run, {".nas/policy.yaml": loose.encode(), **MANY})
    document = house.proposals.propose(run, house.owner, "tidy")
    assert document["decision"] == "gated"
    gate = house.trust.gate(GateId(str(document["gate"])))
    assert "rules of this storage" in str(gate.card["asks"]) or "policy" in str(gate.card["rule"])
    assert house.trust.policy().source != loose
    house.gates.answer(gate.id, gate.digest, house.owner, "no", approve=False)
    _, again = gated(house)
    assert again.state is GateState.PENDING


def test_asking_again_and_again_asks_once(house: House) -> None:
    run, _ = house.start()
    house.write(run, dict(MANY))
    gates = {house.proposals.propose(run, house.owner, f"please {number}")["gate"] for number in range(25)}
    assert len(gates) == 1
    assert len(house.trust.gates(GateState.PENDING)) == 1


def test_many_answers_at_once_are_one(house: House) -> None:
    _, gate = gated(house)
    before = house.appliance.engine.branch(MAIN).head
    told: list[str] = []
    start = threading.Barrier(8)

    def answer(approve: bool) -> None:
        start.wait()
        try:
            house.gates.answer(gate.id, gate.digest, house.owner, "", approve=approve)
            told.append("yes" if approve else "no")
        except (GateClosed, AlreadyAnswered) as error:
            told.append(type(error).__name__)

    threads = [threading.Thread(target=answer, args=(number % 2 == 0,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    decided = house.trust.gate(gate.id)
    assert len([each for each in told if each in {"yes", "no"}]) == 1, told
    merged = house.appliance.engine.branch(MAIN).head != before
    assert merged == (decided.state is GateState.APPROVED)
