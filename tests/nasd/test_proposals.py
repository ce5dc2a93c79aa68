"""From a branch to main: merged, asked, refused, in conflict - once, and only what was judged."""

from __future__ import annotations

import pytest

from interfaces.faults import Fault, Kind
from nasd.runs import MAIN, Run
from tests.nasd.conftest import House
from trust.errors import GateClosed
from trust.model import Gate, GateId, GatePhase, GateState
from trust.policy import default_policy

MANY = {f"many/{number}.txt": b"x" for number in range(201)}


def propose(house: House, run: Run, files: dict[str, bytes | None], message: str = "work") -> dict[str, object]:
    house.write(run, files)
    return house.proposals.propose(run, house.owner, message)


def gate_of(house: House, document: dict[str, object]) -> Gate:
    return house.trust.gate(GateId(str(document["gate"])))


def approve(house: House, gate: Gate) -> dict[str, object]:
    result = house.gates.answer(gate.id, gate.digest, house.owner, "fine", approve=True)["result"]
    assert isinstance(result, dict)
    return result


def test_a_small_clean_proposal_merges_by_itself_with_provenance(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, {"src/a.py": b"a = 2\n"})
    assert document["decision"] == "merged"
    assert house.read_main("src/a.py") == b"a = 2\n"
    commit = house.appliance.engine.read_commit(house.appliance.engine.branch(MAIN).head)
    assert commit.id == document["commit"]
    assert len(commit.parents) == 2
    assert commit.note.provenance.proposal == document["proposal"]
    assert (commit.note.provenance.principal, commit.note.provenance.run) == ("coder", run.run)


def test_nothing_to_propose_is_said_and_not_proposed(house: House) -> None:
    run, _ = house.start()
    with pytest.raises(Fault) as caught:
        house.proposals.propose(run, house.owner, "nothing")
    assert caught.value.kind is Kind.INVALID
    assert house.proposals.all() == []


def test_a_large_proposal_waits_for_a_person_and_then_merges(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, MANY)
    assert (document["decision"], "many-files-ask" in str(document["policy"])) == ("gated", True)
    main = house.appliance.engine.branch(MAIN).head
    gate = gate_of(house, document)
    assert gate.required_role == "owner"
    assert house.appliance.engine.branch(MAIN).head == main
    assert approve(house, gate)["decision"] == "merged"
    assert house.read_main("many/7.txt") == b"x"
    used = house.trust.gate(gate.id)
    assert (used.state, used.phase, used.outcome) == (GateState.APPROVED, GatePhase.CLOSED, "merged")


def test_a_rejected_proposal_changes_nothing_and_says_who_said_no(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, MANY)
    main = house.appliance.engine.branch(MAIN).head
    gate = gate_of(house, document)
    result = house.gates.answer(gate.id, gate.digest, house.owner, "not today", approve=False)["result"]
    assert result["decision"] == "refused"
    assert "not today" in result["reason"]
    assert house.appliance.engine.branch(MAIN).head == main
    assert house.appliance.engine.branch(run.branch).head == document["head"]


def test_a_gate_is_answered_once(house: House) -> None:
    run, _ = house.start()
    gate = gate_of(house, propose(house, run, MANY))
    approve(house, gate)
    with pytest.raises(GateClosed):
        house.gates.answer(gate.id, gate.digest, house.owner, "", approve=False)


def test_nobody_answering_means_the_frozen_fallback(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, MANY)
    house.pass_time(86400)
    assert [gate.id for gate in house.gates.expire()] == [document["gate"]]
    proposal = house.proposals.find(str(document["proposal"]))
    assert (proposal.state, "before the deadline" in proposal.reason) == ("refused", True)
    with pytest.raises(GateClosed):
        approve(house, gate_of(house, document))


def test_a_branch_that_moved_after_the_question_supersedes_it_and_says_by_what(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, MANY)
    house.write(run, {"many/0.txt": b"something else"})
    commit = house.runs.commit(run, house.owner, "later")["commit"]
    main = house.appliance.engine.branch(MAIN).head
    with pytest.raises(GateClosed, match=f"superseded by commit:{commit}"):
        approve(house, gate_of(house, document))
    gate, proposal = gate_of(house, document), house.proposals.find(str(document["proposal"]))
    assert (gate.state, gate.phase, gate.successor) == (GateState.SUPERSEDED, GatePhase.CLOSED, f"commit:{commit}")
    assert (proposal.state, str(commit) in proposal.reason) == ("stale", True)
    assert house.appliance.engine.branch(MAIN).head == main
    assert house.records("gate.superseded") == [{"gate": gate.id, "run": run.run, "successor": f"commit:{commit}"}]


def test_a_later_proposal_supersedes_the_one_that_waits_without_anybody_asking(house: House) -> None:
    run, _ = house.start()
    first = propose(house, run, MANY)
    second = propose(house, run, {"many/0.txt": b"something else"})
    house.gates.tick()
    assert gate_of(house, first).successor == second["gate"]
    assert approve(house, gate_of(house, second))["decision"] == "merged"
    assert house.read_main("many/0.txt") == b"something else"


def test_main_moving_elsewhere_does_not_void_an_approval(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, MANY)
    other, _ = house.start()
    assert propose(house, other, {"docs/one.md": b"one\n"})["decision"] == "merged"
    assert approve(house, gate_of(house, document))["decision"] == "merged"
    assert house.read_main("docs/one.md") == b"one\n"
    assert house.read_main("many/7.txt") == b"x"


def test_main_moving_under_the_same_paths_is_another_question(house: House) -> None:
    run, _ = house.start()
    text = b"".join(b"line %d\n" % number for number in range(40))
    seed, _ = house.start()
    assert propose(house, seed, {"shared.txt": text})["decision"] == "merged"
    run, _ = house.start()
    document = propose(house, run, MANY | {"shared.txt": text.replace(b"line 1\n", b"line one\n")})
    other, _ = house.start()
    assert propose(house, other, {"shared.txt": text.replace(b"line 38\n", b"line thirty-eight\n")})["decision"] == "merged"
    gate = gate_of(house, document)
    with pytest.raises(GateClosed, match="superseded by g"):
        approve(house, gate)
    assert house.read_main("shared.txt") == text.replace(b"line 38\n", b"line thirty-eight\n")
    fresh = gate_of(house, house.proposals.document(house.proposals.find(str(document["proposal"]))))
    assert fresh.id == house.trust.gate(gate.id).successor and fresh.card["overlap_paths"] == ["shared.txt"]
    assert approve(house, fresh)["decision"] == "merged"
    assert house.read_main("shared.txt") == text.replace(b"line 1\n", b"line one\n").replace(b"line 38\n", b"line thirty-eight\n")


def test_a_conflict_names_its_paths_and_leaves_both_sides(house: House) -> None:
    one, _ = house.start()
    other, _ = house.start()
    assert propose(house, one, {"src/a.py": b"a = 'one'\n"})["decision"] == "merged"
    document = propose(house, other, {"src/a.py": b"a = 'other'\n"})
    assert document["decision"] == "conflict"
    assert [conflict["path"] for conflict in document["conflicts"]] == ["src/a.py"]  # type: ignore[attr-defined]
    assert house.read_main("src/a.py") == b"a = 'one'\n"
    assert house.appliance.engine.branch(other.branch).head == document["head"]


def test_touching_the_policy_asks_and_an_approved_policy_counts_from_then_on(house: House) -> None:
    run, _ = house.start()
    guard = 'guards:\n  - id: no-readme\n    effect: refuse\n    actions: [merge]\n    paths: ["README.md"]\n    reason: "hands off"\n'
    text = default_policy().replace("guards:\n", guard, 1)
    document = propose(house, run, {".nas/policy.yaml": text.encode()})
    assert "policy-asks" in str(document["policy"])
    assert approve(house, gate_of(house, document))["decision"] == "merged"
    other, _ = house.start()
    refused = propose(house, other, {"README.md": b"changed\n"})
    assert (refused["decision"], refused["reason"]) == ("refused", refused["reason"])
    assert refused["decision"] == "refused"
    assert "no-readme" in str(refused["policy"])
    assert "hands off" in str(refused["reason"])
    assert house.read_main("README.md") == b"hello\n"


def test_a_policy_that_does_not_compile_never_reaches_main_nor_a_person(house: House) -> None:
    run, _ = house.start()
    main = house.appliance.engine.branch(MAIN).head
    document = propose(house, run, {".nas/policy.yaml": b"version: 1\nroles: {owner: [owner]}\ngrants: nonsense\n"})
    assert document["decision"] == "refused"
    assert ".nas/policy.yaml:3:" in str(document["reason"])
    assert house.appliance.engine.branch(MAIN).head == main


def test_main_is_never_left_without_a_policy(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, {".nas/policy.yaml": None})
    assert (document["decision"], ".nas/policy.yaml" in str(document["reason"])) == ("refused", True)


def test_withdrawing_a_waiting_proposal_closes_its_gate(house: House) -> None:
    run, _ = house.start()
    document = propose(house, run, MANY)
    proposal = house.proposals.find(str(document["proposal"]))
    assert house.proposals.withdraw(proposal, house.owner, "changed my mind")["state"] == "withdrawn"
    with pytest.raises(GateClosed):
        approve(house, gate_of(house, document))


def test_the_card_shows_what_would_be_merged(house: House) -> None:
    run, _ = house.start(purpose="bulk")
    document = propose(house, run, {"docs/one.md": None, "README.md": b"new\n"} | MANY, "many things")
    card = gate_of(house, document).card
    assert (card["who"], card["on_behalf_of"], card["why"], card["purpose"]) == ("coder", "owner", "many things", "bulk")
    assert (card["files"], card["deletes"]) == (203, 1)
    assert card["asks"] == "more than 200 files change"
    assert str(card["rule"]).startswith("many-files-ask (policy.yaml:")
    assert {"kind": "deleted", "path": "docs/one.md"} in card["changes"]


def test_two_proposals_for_different_files_both_merge(house: House) -> None:
    one, _ = house.start()
    other, _ = house.start()
    house.write(one, {"src/a.py": b"a = 10\n"})
    house.write(other, {"src/b.py": b"b = 10\n"})
    assert house.proposals.propose(one, house.owner, "one")["decision"] == "merged"
    assert house.proposals.propose(other, house.owner, "other")["decision"] == "merged"
    assert (house.read_main("src/a.py"), house.read_main("src/b.py")) == (b"a = 10\n", b"b = 10\n")
