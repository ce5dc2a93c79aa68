"""A change of the policy: asked about whatever the policy says, shown for what it does, bound to its exact bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasd.bypasses import Bypasses
from nasd.policy_source import POLICY_PATH, policy_digest
from nasd.proposals import Proposals
from nasd.runs import Run
from tests.nasd.conftest import House, build_house
from trust.gates import act_digest
from trust.model import Gate, GateId, GateState
from trust.policy import default_policy

PERMISSIVE = """
version: 1
roles: {owner: [owner]}
grants:
  - {id: work, actions: [list, read, write, delete, propose, merge]}
  - {id: start, who: {roles: [owner]}, actions: [start]}
"""
PATH = POLICY_PATH.decode()


def propose(house: House, run: Run, text: str) -> dict[str, object]:
    house.write(run, {PATH: text.encode()})
    return dict(house.proposals.propose(run, house.owner, "another policy"))


def gate_of(house: House, document: dict[str, object]) -> Gate:
    return house.trust.gate(GateId(str(document["gate"])))


def approve(house: House, gate: Gate) -> dict[str, object]:
    return dict(house.gates.answer(gate.id, gate.digest, house.owner, "", approve=True))


def test_a_policy_that_asks_about_nothing_asks_about_itself(tmp_path: Path) -> None:
    house = build_house(tmp_path, "reference", PERMISSIVE)
    run, _ = house.start()
    house.write(run, {"src/a.py": b"a = 2\n"})
    assert house.proposals.propose(run, house.owner, "work")["decision"] == "merged"
    document = propose(house, run, PERMISSIVE + "guards: []\n")
    assert document["decision"] == "gated" and "policy-change (built in)" in str(document["policy"])
    approve(house, gate_of(house, document))
    assert house.trust.adopted_policy()[0] == PERMISSIVE + "guards: []\n"
    house.appliance.close()


def test_a_bypass_of_what_asks_about_the_policy_leaves_the_question_that_is_built_in(house: House) -> None:
    Bypasses(house.appliance).open(house.owner, "policy-asks", 1800, "in a hurry")
    run, _ = house.start()
    assert propose(house, run, default_policy() + "# one\n")["decision"] == "gated"
    assert house.records("gate.bypassed") == []


def test_people_see_what_a_policy_decides_differently_and_what_it_would_have_decided(house: House) -> None:
    run, _ = house.start()
    house.write(run, {f"new/{number}": b"x" for number in range(30)})
    merged = house.proposals.propose(run, house.owner, "many")
    assert merged["decision"] == "merged"
    text = (
        default_policy()
        .replace("at_least: 21\n", "at_least: 50\n")
        .replace("files:\n        at_least: 201", "files:\n        at_least: 25")
    )
    card = gate_of(house, propose(house, run, text)).card
    change = card["policy_change"]
    assert {(each["action"], each["from"], each["to"]) for each in change["wider"]} == {("merge", "gate", "allow")}
    assert {(each["action"], each["from"], each["to"]) for each in change["narrower"]} == {("merge", "allow", "gate")}
    assert change["complete"] and "become easier" in card["policy_in_words"]
    assert change["replay"]["moved"] == [{"from": "allow", "to": "gate", "count": 1}]
    assert "1 would go from allow to gate" in card["policy_replay"]
    assert card["policy_after"] == policy_digest(text)


def test_an_approval_binds_the_exact_text(house: House) -> None:
    run, _ = house.start()
    one = gate_of(house, propose(house, run, default_policy() + "# one\n"))
    other = gate_of(house, propose(house, run, default_policy() + "# two\n"))
    assert one.act != other.act and other.act == act_digest(other.subject, _act(house, other))
    assert house.trust.gate(one.id).state is not GateState.APPROVED
    approve(house, other)
    assert house.trust.adopted_policy()[0].endswith("# two\n")
    assert house.records("policy.adopt")[0]["digest"] == policy_digest(default_policy() + "# two\n")


def _act(house: House, gate: Gate) -> dict[str, object]:
    from nasd.proposal_cards import act_of

    assert gate.card["policy_after"] == act_of(gate.card)["policy_after"]
    return act_of(gate.card)


def test_two_policies_are_never_merged_into_one_that_nobody_saw(house: House) -> None:
    first, _ = house.start()
    second, _ = house.start()
    longer = default_policy() + "# an end\n"
    asked = propose(house, first, "# a beginning\n" + default_policy())
    approve(house, gate_of(house, propose(house, second, longer)))
    assert house.trust.adopted_policy()[0] == longer
    gate = gate_of(house, asked)
    house.proposals.successor(gate)
    assert "changed on main meanwhile" in house.proposals.find(gate.subject.removeprefix("proposal:")).reason
    assert house.read_main(PATH).decode() == longer == house.trust.adopted_policy()[0]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("at_least: 21\n", "at_least: 21\n        at_most: 3\n", "never applies"),
        ("    required_role: owner\n", "    required_role: owner\n    approvals: 2\n", "wants 2 people and 1 could answer"),
    ],
)
def test_a_policy_that_contradicts_itself_reaches_nobody(house: House, before: str, after: str, wanted: str) -> None:
    run, _ = house.start()
    document = propose(house, run, default_policy().replace(before, after, 1))
    assert document["decision"] == "refused" and wanted in str(document["reason"])
    assert not house.trust.gates(GateState.PENDING)


def test_a_review_is_made_when_people_are_asked_and_not_each_time_it_is_looked(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = house.start()
    gate = gate_of(house, propose(house, run, default_policy() + "# one\n"))

    def fail(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr("nasd.proposed_policy.review", fail)
    assert isinstance(house.proposals, Proposals) and house.proposals.successor(gate) == ""
