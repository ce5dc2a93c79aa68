"""The life of a run: it starts whole or not at all, and its work outlives it."""

from __future__ import annotations

import pytest

from interfaces.faults import Fault, Kind
from nasd.run_request import Request
from nasd.runs import MAIN
from store.errors import NotFound
from tests.nasd.conftest import House
from trust.errors import LeaseRevoked, RecorderUnavailable
from trust.model import Action, BudgetKind, Digest, GateId, GateState, LeaseId, PrincipalKind


def gated(house: House, request: Request) -> Fault:
    with pytest.raises(Fault) as caught:
        house.runs.start(house.owner, request)
    assert caught.value.kind is Kind.GATED
    return caught.value


def test_a_run_has_a_branch_at_the_head_of_main_and_a_lease_of_its_own(house: House) -> None:
    run, secret = house.start(purpose="tidy")
    branch = house.appliance.engine.branch(run.branch)
    assert branch.head == house.appliance.engine.branch(MAIN).head
    assert run.branch == f"coder/{run.run}"
    lease = house.holder(secret).lease
    assert lease is not None
    assert (lease.run, lease.principal, lease.on_behalf_of, lease.scope.purpose) == (run.run, "coder", "owner", "tidy")


def test_what_a_request_leaves_open_is_what_the_policy_gives_at_once(house: House) -> None:
    run, _ = house.start()
    scope = house.trust.lease(LeaseId(run.lease)).scope
    assert scope.expires - scope.not_before == 86400
    assert scope.budgets[BudgetKind.BYTES_WRITTEN] == 50 << 30


def test_the_first_run_of_a_role_makes_the_role_known_as_an_agent(house: House) -> None:
    house.start("writer")
    assert house.trust.principal("writer").kind is PrincipalKind.AGENT


def test_a_request_beyond_the_envelope_waits_for_a_person_and_starts_once(house: House) -> None:
    request = Request("coder", ttl=7 * 86400)
    fault = gated(house, request)
    assert gated(house, request).gate == fault.gate, "asking twice opens one gate"
    gate = house.trust.gate(GateId(fault.gate))
    house.gates.answer(gate.id, gate.digest, house.owner, "for the release", approve=True)
    document = house.runs.start(house.owner, Request("coder", ttl=7 * 86400, gate=fault.gate))
    scope = house.trust.lease(LeaseId(document["lease"])).scope
    assert scope.expires - scope.not_before == 7 * 86400
    with pytest.raises(Fault, match="approved by owner and used"):
        house.runs.start(house.owner, Request("coder", ttl=7 * 86400, gate=fault.gate))


def test_an_approved_gate_starts_nothing_but_what_it_showed(house: House) -> None:
    gate = house.trust.gate(GateId(gated(house, Request("coder", ttl=7 * 86400)).gate))
    house.gates.answer(gate.id, gate.digest, house.owner, "", approve=True)
    with pytest.raises(Fault) as caught:
        house.runs.start(house.owner, Request("coder", ttl=8 * 86400, gate=gate.id))
    assert caught.value.kind is Kind.PRECONDITION
    assert house.trust.gate(gate.id).state is GateState.APPROVED


def test_a_rejected_gate_starts_nothing(house: House) -> None:
    gate = house.trust.gate(GateId(gated(house, Request("coder", ttl=7 * 86400)).gate))
    house.gates.answer(gate.id, gate.digest, house.owner, "too long", approve=False)
    with pytest.raises(Fault) as caught:
        house.runs.start(house.owner, Request("coder", ttl=7 * 86400, gate=gate.id))
    assert caught.value.kind is Kind.DENIED
    assert "too long" in caught.value.message


def test_a_lease_starts_no_runs(house: House) -> None:
    _, secret = house.start()
    with pytest.raises(Fault) as caught:
        house.runs.start(house.holder(secret), Request("other"))
    assert caught.value.kind is Kind.DENIED


def test_no_record_means_no_run(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    before = house.appliance.engine.branches()

    def full(*_: object) -> None:
        raise RecorderUnavailable("record", "the disk is full")

    house.start("coder")
    branches = house.appliance.engine.branches()
    monkeypatch.setattr(house.trust, "intend", full)
    with pytest.raises(RecorderUnavailable):
        house.runs.start(house.owner, Request("coder"))
    assert house.appliance.engine.branches() == branches
    assert len(branches) == len(before) + 1


def test_a_run_whose_lease_cannot_be_issued_leaves_no_branch(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.start("coder")
    branches = house.appliance.engine.branches()

    def fail(*_: object) -> None:
        raise RecorderUnavailable("lease", "the disk is full")

    monkeypatch.setattr(house.trust, "issue_lease", fail)
    with pytest.raises(RecorderUnavailable):
        house.runs.start(house.owner, Request("coder"))
    assert house.appliance.engine.branches() == branches
    outcomes = [record.body for record in house.trust.records(kind="run.start")]
    assert outcomes[-1]["result"] == "failed"


def test_a_commit_carries_principal_owner_run_and_lease(house: House) -> None:
    run, _ = house.start()
    house.write(run, {"new.txt": b"x"})
    document = house.runs.commit(run, house.owner, "add a file")
    note = house.appliance.engine.read_commit(document["commit"]).note
    assert note.message.strip() == "add a file"
    provenance = note.provenance
    assert (provenance.principal, provenance.on_behalf_of, provenance.run, provenance.lease) == ("coder", "owner", run.run, run.lease)


def test_a_commit_with_nothing_to_commit_is_the_head_and_no_record(house: House) -> None:
    run, _ = house.start()
    document = house.runs.commit(run, house.owner, "nothing")
    assert (document["commit"], document["changed"]) == (house.appliance.engine.branch(run.branch).head, 0)
    assert house.records("commit") == []


def test_ending_a_run_commits_what_is_left_and_takes_its_lease_back(house: House) -> None:
    run, secret = house.start()
    house.write(run, {"left.txt": b"not committed yet"})
    document = house.runs.end(run, house.owner)
    tree = house.appliance.engine.view(document["commit"])
    assert b"left.txt" in [name for name, _ in tree.list(tree.attributes(1).node)]  # type: ignore[arg-type]
    with pytest.raises(LeaseRevoked):
        house.holder(secret)
    assert house.runs.find(run.run).state == "ended"
    assert house.runs.end(house.runs.find(run.run), house.owner)["state"] == "ended", "a repeat says the same"


def test_an_expired_lease_closes_its_run_with_its_work_committed(house: House) -> None:
    run, _ = house.start(ttl=60)
    house.write(run, {"left.txt": b"x"})
    house.jobs.close_ended()
    assert house.runs.find(run.run).state == "active"
    house.pass_time(61)
    house.jobs.close_ended()
    assert house.runs.find(run.run).state == "expired"
    assert run.branch not in house.appliance.engine.dirty()


def test_a_revoked_lease_closes_its_run_with_its_work_committed(house: House) -> None:
    run, _ = house.start()
    house.write(run, {"left.txt": b"x"})
    house.trust.revoke_lease(LeaseId(run.lease), "wrong task", house.appliance.now())
    house.jobs.close_ended()
    ended = house.runs.find(run.run)
    assert (ended.state, ended.reason) == ("revoked", "wrong task")
    assert run.branch not in house.appliance.engine.dirty()


def test_a_quiet_branch_is_committed_by_itself_and_a_busy_one_later(house: House) -> None:
    run, _ = house.start()
    head = house.appliance.engine.branch(run.branch).head
    house.write(run, {"one.txt": b"1"})
    house.jobs.commit_quiet()
    house.pass_time(1)
    house.write(run, {"two.txt": b"2"})
    house.jobs.commit_quiet()
    house.pass_time(1.5)
    house.jobs.commit_quiet()
    assert house.appliance.engine.branch(run.branch).head == head, "it changed 1.5 seconds ago"
    house.pass_time(0.5)
    house.jobs.commit_quiet()
    assert house.appliance.engine.branch(run.branch).head != head
    assert run.branch not in house.appliance.engine.dirty()


def test_a_branch_that_never_rests_is_committed_all_the_same(house: House) -> None:
    run, _ = house.start()
    head = house.appliance.engine.branch(run.branch).head
    for second in range(62):
        house.write(run, {"busy.txt": b"%d" % second})
        house.jobs.commit_quiet()
        house.pass_time(1)
    assert house.appliance.engine.branch(run.branch).head != head


def test_an_unknown_run_is_not_found(house: House) -> None:
    with pytest.raises(Fault) as caught:
        house.runs.find("r000")
    assert caught.value.kind is Kind.NOT_FOUND
    with pytest.raises(NotFound):
        house.appliance.engine.branch("coder/r000")


def test_narrowed_actions_stay_narrowed(house: House) -> None:
    _, secret = house.start(actions=frozenset({Action.READ}))
    lease = house.holder(secret).lease
    assert lease is not None
    assert lease.scope.actions == frozenset({Action.READ})


def test_a_wrong_digest_answers_no_gate(house: House) -> None:
    gate = house.trust.gate(GateId(gated(house, Request("coder", ttl=7 * 86400)).gate))
    from trust.errors import GateMismatch

    with pytest.raises(GateMismatch):
        house.gates.answer(gate.id, Digest("0" * 64), house.owner, "", approve=True)
    assert house.trust.gate(gate.id).state is GateState.PENDING
