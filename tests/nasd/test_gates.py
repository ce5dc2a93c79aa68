"""Questions over the whole appliance: asked once, answered by the right people, carried out once, and what each end leads to."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from interfaces.faults import Fault, Kind
from nasd.asking import Asking
from nasd.bypasses import Bypasses
from nasd.runs import MAIN, Run
from tests.nasd.conftest import House, build_house
from trust.errors import AlreadyAnswered, AlreadyRefused, GateClosed, GateMismatch, NotEntitled
from trust.gates import LONGEST_BYPASS, Question
from trust.model import Ask, Decision, Effect, Gate, GateId, GatePhase, GateState, Identity, Position, PrincipalKind
from trust.policy import default_policy
from trust.tokens import narrow_token

MANY = {f"many/{number}.txt": b"x" for number in range(201)}
RULE = "many-files-ask"


def propose(house: House, run: Run, files: dict[str, bytes | None] = MANY) -> dict[str, Any]:  # type: ignore[assignment]
    house.write(run, files)
    return dict(house.proposals.propose(run, house.owner, "work"))


def gate_of(house: House, document: dict[str, Any]) -> Gate:
    return house.trust.gate(GateId(document["gate"]))


def answer(house: House, gate: Gate, by: Identity | None = None, *, approve: bool = True) -> dict[str, Any]:
    return dict(house.gates.answer(gate.id, gate.digest, by or house.owner, "", approve=approve))


def person(house: House, name: str, roles: str = "owner") -> Identity:
    principal = house.trust.add_principal(name, PrincipalKind.HUMAN, 0, {"roles": roles})
    return Identity(principal, house.trust.roles(principal))


def stricter(tmp_path: Path, *lines: str) -> House:
    """Return a house whose rule about many files needs more of people."""
    text = default_policy().replace(f"id: {RULE}\n", f"id: {RULE}\n" + "".join(f"    {line}\n" for line in lines))
    assert text != default_policy()
    return build_house(tmp_path / "home", "reference", text)


def test_nobody_whom_a_lease_of_the_run_was_handed_on_to_answers_for_it(house: House) -> None:
    """However the work was shared out, narrowed by the server or by a secret alone, and whoever proposes it in the end."""
    run, secret = house.start()
    house.holder(narrow_token(secret, {"who": ["planner", "ana"]}))
    gate = gate_of(house, propose(house, run))
    assert {"planner", "ana"} <= set(gate.excluded)
    with pytest.raises(NotEntitled):
        answer(house, gate, person(house, "ana"))
    answer(house, gate, person(house, "bo"))
    assert house.trust.gate(gate.id).state is GateState.APPROVED


# asked once


def test_proposing_the_same_again_asks_nobody_again(house: House) -> None:
    run, _ = house.start()
    first = propose(house, run)
    again = [house.proposals.propose(run, house.owner, f"please {number}") for number in range(25)]
    assert {(document["proposal"], document["gate"]) for document in again} == {(first["proposal"], first["gate"])}
    assert [gate.id for gate in house.trust.gates(GateState.PENDING)] == [first["gate"]]
    assert len(house.records("gate.open")) == 2, "one intent, one outcome"


def test_what_was_refused_is_not_asked_again_until_it_changes(house: House) -> None:
    run, _ = house.start()
    answer(house, gate_of(house, propose(house, run)), approve=False)
    again = house.proposals.propose(run, house.owner, "please")
    assert (again["decision"], "owner said no to exactly this" in again["reason"]) == ("refused", True)
    assert not house.trust.gates(GateState.PENDING)
    assert propose(house, run, {"many/0.txt": b"better"})["decision"] == "gated"


def test_the_card_says_everything_a_minute_needs(house: House) -> None:
    run, _ = house.start(purpose="bulk")
    card = gate_of(house, propose(house, run, MANY | {"docs/one.md": None})).card
    assert card["in_words"] == "adds 201 files, deletes 1 file in many/ (201), docs/ (1)"
    assert card["on_silence"].startswith("after 1d the proposal is refused")
    assert (card["lease"], card["overlap_paths"]) == (run.lease, [])
    assert {"what", "who", "on_behalf_of", "why", "asks", "rule", "reads", "checks", "on_approve", "on_reject"} <= set(card)


def test_every_step_of_a_gate_is_in_the_record_in_order(house: House) -> None:
    run, _ = house.start()
    gate = gate_of(house, propose(house, run))
    answer(house, gate)
    kinds = [(record.kind, record.phase.value) for record in house.trust.records() if record.kind.startswith(("gate", "merge"))]
    assert kinds == [
        *[("gate.open", "intent"), ("gate.open", "outcome"), ("gate.answer", "intent"), ("gate.answer", "outcome")],
        *[("merge", "intent"), ("gate.acknowledged", "fact"), ("merge", "outcome"), ("gate.closed", "fact")],
    ]
    assert house.records("gate.closed") == [{"gate": gate.id, "run": run.run, "state": "approved", "outcome": "merged"}]


def test_a_card_says_who_can_answer_and_that_too_few_can(tmp_path: Path) -> None:
    house = stricter(tmp_path, "approvals: 2")
    assert gate_of(house, propose(house, house.start()[0])).card["who_can"].startswith("owner: 2 with the role owner are needed")
    person(house, "bo")
    assert gate_of(house, propose(house, house.start()[0], MANY | {"x": b"y"})).card["who_can"] == "bo, owner"
    house.appliance.close()


# answered by the right people


def test_two_people_have_to_approve_and_a_stranger_is_none_of_them(tmp_path: Path) -> None:
    house = stricter(tmp_path, "approvals: 2")
    bo, stranger = person(house, "bo"), person(house, "zoe", "intern")
    run, _ = house.start()
    gate = gate_of(house, propose(house, run))
    assert answer(house, gate)["result"] == {"decision": "pending"}
    with pytest.raises(AlreadyAnswered):
        answer(house, gate)
    with pytest.raises(NotEntitled):
        answer(house, gate, stranger)
    done = answer(house, gate, bo)
    assert (done["result"]["decision"], done["answered_by"], done["phase"]) == ("merged", "owner, bo", "closed")
    house.appliance.close()


def test_an_independent_rule_leaves_out_whom_the_run_works_for(tmp_path: Path) -> None:
    house = stricter(tmp_path, "independent: true")
    bo = person(house, "bo")
    run, _ = house.start()
    gate = gate_of(house, propose(house, run))
    assert set(gate.excluded) == {"coder", "owner"}
    with pytest.raises(NotEntitled, match="asking side"):
        answer(house, gate)
    assert answer(house, gate, bo)["result"]["decision"] == "merged"
    house.appliance.close()


def test_an_approval_lapses_when_nothing_used_it_in_time(house: House) -> None:
    wanted = Question("read:r1", {"verb": "read"}, {"what": "read"}, Ask("owner", 100, use_within=50), "rule", "coder", run="r1")
    asking = Asking(house.appliance)
    gate = asking.ask(wanted, house.owner)
    answer(house, gate)
    house.pass_time(50)
    assert asking.permit(wanted, GATED) is None
    house.gates.tick()
    lapsed = house.trust.gate(gate.id)
    assert (lapsed.state, lapsed.phase) == (GateState.LAPSED, GatePhase.CLOSED)
    assert house.records("gate.lapsed") == [{"gate": gate.id, "run": "r1", "fallback": "reject"}]


def test_the_fallback_that_was_frozen_decides_what_silence_means(tmp_path: Path) -> None:
    text = default_policy().replace(f"id: {RULE}\n", f"id: {RULE}\n    fallback: withdraw\n")
    at = text.index(f"id: {RULE}")
    text = text[:at] + text[at:].replace("    fallback: reject\n", "", 1)
    house = build_house(tmp_path / "home", "reference", text)
    run, _ = house.start()
    document = propose(house, run)
    house.pass_time(86400)
    house.gates.tick()
    proposal = house.proposals.find(document["proposal"])
    assert (proposal.state, gate_of(house, document).state) == ("withdrawn", GateState.EXPIRED)
    house.appliance.close()


def test_what_moves_between_the_answer_and_the_act_is_not_released(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look before an answer is a courtesy; what counts is the act at the moment it happens."""
    run, _ = house.start()
    gate = gate_of(house, propose(house, run, MANY | {"src/a.py": b"a = 2\n"}))
    assert propose(house, house.start()[0], {"src/a.py": b"a = 1\n\n\n\nb = 3\n"})["decision"] == "merged"
    main = house.appliance.engine.branch(MAIN).head
    monkeypatch.setattr(house.proposals, "successor", lambda _: "")
    became = answer(house, gate)["result"]
    assert became["decision"] in {"refused", "conflict"} and house.appliance.engine.branch(MAIN).head == main
    moved, _ = house.start()
    gate = gate_of(house, propose(house, moved, {f"more/{number}": b"" for number in range(201)}))
    house.trust.adopt_policy(default_policy() + "\n# another text\n", "policy.yaml", house.appliance.now())
    became = answer(house, gate)["result"]
    assert (became["decision"], became["gate"] != gate.id) == ("gated", True), "people are asked about what it is now"
    assert house.appliance.engine.branch(MAIN).head == main and house.trust.gate(gate.id).outcome == "gated"
    assert answer(house, house.trust.gate(GateId(became["gate"])))["result"]["decision"] == "merged"


# many at once


def test_questions_that_are_alike_are_answered_together_each_by_its_own_digest(house: House) -> None:
    runs = [house.start()[0] for _ in range(3)]
    gates = [gate_of(house, propose(house, run)) for run in runs]
    other = gate_of(house, propose(house, house.start()[0], MANY | {"extra.txt": b"y"}))
    assert len({gate.alike for gate in gates}) == 1 != len({gate.digest for gate in gates}) and other.alike != gates[0].alike
    answers = [(gates[0].id, gates[0].digest), (gates[1].id, gates[2].digest), (gates[2].id, gates[2].digest), (other.id, other.digest)]
    became = house.gates.answer_alike(gates[0].alike, answers, house.owner, "fine", approve=True)
    assert became[0]["result"]["decision"] == "merged"
    assert (became[1]["error"]["code"], became[3]["error"]["code"]) == ("precondition-failed", "precondition-failed")
    assert [house.trust.gate(gate.id).state is GateState.PENDING for gate in (gates[1], other)] == [True, True]
    assert became[2].get("error") or became[2]["result"]["decision"] in {"merged", "refused"}


def test_many_people_answering_at_once_merge_once(house: House) -> None:
    run, _ = house.start()
    gate = gate_of(house, propose(house, run))
    main = house.appliance.engine.branch(MAIN).head
    won: list[str] = []

    def try_it(approve: bool, digest: str) -> None:
        try:
            house.gates.answer(gate.id, digest, house.owner, "", approve=approve)
            won.append("approve" if approve else "reject")
        except (GateClosed, GateMismatch):
            return

    threads = [threading.Thread(target=try_it, args=(number % 2 == 0, gate.digest if number % 3 else "0" * 64)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    proposal = house.proposals.find(gate.subject.removeprefix("proposal:"))
    assert proposal.state == {"approve": "merged", "reject": "refused"}[won[0]]
    assert (house.appliance.engine.branch(MAIN).head != main) == (won == ["approve"])
    assert house.trust.gate(gate.id).phase is GatePhase.CLOSED


# waiting


@pytest.mark.parametrize("state", ["approved", "rejected", "withdrawn", "superseded", "expired"])
def test_whoever_waits_learns_the_end_within_a_second(house: House, state: str) -> None:
    run, _ = house.start()
    gate = gate_of(house, propose(house, run))
    learned: list[tuple[str, float]] = []

    def wait() -> None:
        found = house.gates.wait(gate.id, 20)
        learned.append((found.state.value, time.monotonic()))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    assert not learned
    if state in {"approved", "rejected"}:
        answer(house, gate, approve=state == "approved")
    elif state == "withdrawn":
        house.gates.withdraw(gate, house.owner, "sorry")
    elif state == "superseded":
        house.gates.supersede(gate, "g7")
    else:
        house.pass_time(86400)
        house.gates.tick()
    ended = time.monotonic()
    thread.join(10)
    assert learned and learned[0][0] == state and learned[0][1] - ended < 1


def test_too_many_who_wait_are_told_at_once_how_it_stands(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = house.start()
    gate = gate_of(house, propose(house, run))
    monkeypatch.setattr(house.gates, "_waiting", threading.Semaphore(0))
    began = time.monotonic()
    assert house.gates.wait(gate.id, 20).state is GateState.PENDING and time.monotonic() - began < 1


# any act

GATED = Decision(Effect.GATE, "sensitive", "rule-of-two", Position("p", 1, 1), ask=Ask("owner", 100), asking=("rule-of-two",))


def egress(run: str = "r1", **act: object) -> Question:
    return Question(
        *(f"egress:{run}", {"verb": "send", "account": "mail", "body": "d1", **act}, {"what": "send a mail"}, Ask("owner", 100)),
        *("rule-of-two", "coder"),
        run=run,
    )


def test_an_act_of_any_kind_is_asked_about_done_once_and_closed(house: House) -> None:
    asking, done = Asking(house.appliance), []
    assert asking.permit(egress(), GATED) is None
    gate = asking.ask(egress(), house.owner)
    assert asking.ask(egress(), house.owner) == gate
    fault = asking.gated(gate, GATED)
    assert (fault.kind, fault.gate, fault.policy) == (Kind.GATED, gate.id, "rule-of-two (p:1:1)")
    assert answer(house, gate)["result"] == {"decision": "approved"}
    assert asking.permit(egress(body="d2"), GATED) is None, "other bytes were not approved"
    assert asking.permit(egress("r2"), GATED) is None, "nor another run"
    permit = asking.permit(egress(), GATED)
    assert permit is not None and permit.id == gate.id
    with asking.using(permit, egress(), house.owner) as outcome:
        done.append(house.trust.gate(gate.id).phase)
        outcome["result"] = "sent"
    assert done == [GatePhase.ACKNOWLEDGED]
    closed = house.trust.gate(gate.id)
    assert (closed.phase, closed.outcome) == (GatePhase.CLOSED, "sent")
    with pytest.raises(GateClosed), asking.using(permit, egress(), house.owner):
        done.append(GatePhase.CLOSED)
    assert len(done) == 1 and asking.permit(egress(), GATED) is None
    assert [body["gate"] for body in house.records("gate.acknowledged") + house.records("gate.closed")] == [gate.id, gate.id]


def test_an_act_that_fails_spends_its_approval_and_says_so(house: House) -> None:
    asking = Asking(house.appliance)
    answer(house, gate := asking.ask(egress(), house.owner))
    with pytest.raises(ZeroDivisionError), asking.using(asking.permit(egress(), GATED), egress(), house.owner):
        raise ZeroDivisionError
    assert house.trust.gate(gate.id).outcome == "failed" and asking.permit(egress(), GATED) is None


def test_an_approval_of_one_act_is_used_for_no_other(house: House) -> None:
    asking = Asking(house.appliance)
    answer(house, asking.ask(egress(), house.owner))
    permit = asking.permit(egress(), GATED)
    with pytest.raises(GateMismatch), asking.using(permit, egress(body="d2"), house.owner):
        raise AssertionError("the block must not run")


def test_a_refused_act_is_closed_and_stays_refused(house: House) -> None:
    asking = Asking(house.appliance)
    gate = asking.ask(egress(), house.owner)
    answer(house, gate, approve=False)
    assert house.trust.gate(gate.id).phase is GatePhase.CLOSED
    with pytest.raises(AlreadyRefused):
        asking.ask(egress(), house.owner)


class Machine:
    """Executes acts of one kind, or fails."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken = False
        self.moved = ""

    def carry_out(self, gate: Gate, identity: Identity | None) -> dict[str, Any]:
        if self.broken:
            raise Fault(Kind.NO_SPACE, "the disk is full")
        self.done.append(f"{gate.id} {gate.state.value}")
        return {"decision": "turned"}

    def successor(self, gate: Gate) -> str:
        return self.moved


def turn(number: int = 0) -> Question:
    return Question(f"turn:{number}", {"verb": "turn", "by": number}, {"what": "turn"}, Ask("owner", 100), "turns-ask", "coder")


def test_a_kind_with_an_executor_is_carried_out_and_closed_with_what_it_said(house: House) -> None:
    machine = Machine()
    house.gates.register("turn", machine)
    gate = Asking(house.appliance).ask(turn(), house.owner)
    assert answer(house, gate)["result"] == {"decision": "turned"}
    assert machine.done == [f"{gate.id} approved"] and house.trust.gate(gate.id).outcome == "turned"
    machine.moved = "commit:c7"
    other = Asking(house.appliance).ask(turn(1), house.owner)
    with pytest.raises(GateClosed, match="superseded by commit:c7"):
        answer(house, other)
    assert machine.done[1:] == [f"{other.id} superseded"]


def test_what_could_not_be_carried_out_is_tried_again(house: House) -> None:
    machine = Machine()
    house.gates.register("turn", machine)
    gate = Asking(house.appliance).ask(turn(), house.owner)
    machine.broken = True
    with pytest.raises(Fault, match="disk is full"):
        answer(house, gate)
    assert house.trust.gate(gate.id).phase is GatePhase.DECIDED
    machine.broken = False
    house.gates.tick()
    assert not machine.done
    house.pass_time(61)
    house.gates.tick()
    assert machine.done == [f"{gate.id} approved"] and house.trust.gate(gate.id).phase is GatePhase.CLOSED


# bypasses


def test_a_bypassed_rule_asks_nobody_and_every_act_under_it_is_recorded(house: House) -> None:
    bypass = Bypasses(house.appliance).open(house.owner, RULE, 1800, "moving the archive")
    run, _ = house.start()
    document = propose(house, run)
    assert (document["decision"], document["gate"]) == ("merged", "")
    assert bypass["bypass"] in document["reason"]
    (act,) = house.records("gate.bypassed")
    assert (act["bypass"], act["rule"], act["by"], act["subject"]) == (bypass["bypass"], RULE, "owner", f"proposal:{document['proposal']}")
    Bypasses(house.appliance).end(house.owner, bypass["bypass"])
    assert propose(house, house.start()[0], {f"more/{number}": b"" for number in range(201)})["decision"] == "gated"
    assert len(house.records("gate.bypass-ended")) == 1


def test_a_bypass_ends_by_its_time_and_by_another_policy(house: House) -> None:
    Bypasses(house.appliance).open(house.owner, RULE, 1800, "moving")
    house.pass_time(1800)
    run, _ = house.start()
    assert propose(house, run)["decision"] == "gated"
    Bypasses(house.appliance).open(house.owner, RULE, 1800, "moving")
    house.trust.adopt_policy(default_policy() + "\n# another text\n", "policy.yaml", house.appliance.now())
    other, _ = house.start()
    assert propose(house, other, {f"more/{number}": b"" for number in range(201)})["decision"] == "gated"


def test_a_bypass_of_one_rule_covers_no_other_that_asks_too(house: House) -> None:
    Bypasses(house.appliance).open(house.owner, RULE, 1800, "moving")
    run, _ = house.start()
    text = default_policy() + "# more\n"
    assert propose(house, run, MANY | {".nas/policy.yaml": text.encode()})["decision"] == "gated"
    assert house.records("gate.bypassed") == []


def test_only_rules_that_ask_are_bypassed_and_only_by_an_owner_with_a_reason(tmp_path: Path) -> None:
    refuse = 'guards:\n  - id: no-readme\n    effect: refuse\n    actions: [merge]\n    paths: ["README.md"]\n    reason: "hands off"\n'
    house = build_house(tmp_path / "home", "reference", default_policy().replace("guards:\n", refuse, 1))
    bypasses = Bypasses(house.appliance)
    for rule, kind in (("no-readme", Kind.INVALID), ("nonsense", Kind.NOT_FOUND)):
        with pytest.raises(Fault) as caught:
            bypasses.open(house.owner, rule, 60, "because")
        assert caught.value.kind is kind and RULE in caught.value.hint
    with pytest.raises(NotEntitled):
        bypasses.open(person(house, "bo", "reviewer"), RULE, 60, "because")
    for seconds, reason in ((LONGEST_BYPASS + 1, "because"), (60, " ")):
        with pytest.raises(Exception, match=RULE):
            bypasses.open(house.owner, RULE, seconds, reason)
    bypasses.open(house.owner, RULE, 60, "because")
    run, _ = house.start()
    refused = propose(house, run, MANY | {"README.md": b"changed"})
    assert (refused["decision"], "no-readme" in refused["policy"]) == ("refused", True)
    house.appliance.close()
