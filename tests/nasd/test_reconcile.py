"""What a crash leaves between an intent and its outcome is found out and concluded, and nothing happens twice."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from nasd.runs import MAIN, Run
from store.errors import NotFound
from store.model import CommitId, Note
from tests.nasd.conftest import House
from trust.model import GateId, GatePhase, GateState


class PowerGone(BaseException):
    """Stands for the end of the process: nothing catches it, nothing is concluded."""


def die(*_: object, **__: object) -> None:
    raise PowerGone


def test_a_run_that_died_before_its_lease_leaves_no_branch(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.start()
    before = house.appliance.engine.branches()
    with monkeypatch.context() as patched:
        patched.setattr(house.trust, "issue_lease", die)
        patched.setattr(house.appliance.engine, "delete_branch", die)
        with pytest.raises(PowerGone):
            house.start()
    assert len(house.appliance.engine.branches()) == len(before) + 1
    house.reconciliation.finish()
    assert house.appliance.engine.branches() == before
    assert list(house.trust.unconcluded()) == []


def test_a_run_that_died_after_its_lease_is_whole(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    known, _ = house.start()
    with monkeypatch.context() as patched:
        patched.setattr(house.trust, "conclude", die)
        with pytest.raises(PowerGone):
            house.start()
    house.reconciliation.finish()
    (run,) = [run for run in house.runs.all() if run.run != known.run]
    assert house.appliance.engine.branch(run.branch).name == run.branch
    assert list(house.trust.unconcluded()) == []


def merge_point(house: House, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> Run:
    """Propose something that merges by itself and die just before or just after the target moved."""
    run, _ = house.start()
    house.write(run, {"src/a.py": b"a = 2\n"})
    merge = house.appliance.engine.merge

    def merge_and_die(into: str, expected: CommitId, source: CommitId, note: Note) -> None:
        if after:
            merge(into, expected, source, note)
        raise PowerGone

    with monkeypatch.context() as patched:
        patched.setattr(house.appliance.engine, "merge", merge_and_die)
        with pytest.raises(PowerGone):
            house.proposals.propose(run, house.owner, "work")
    return run


@pytest.mark.parametrize("after", [False, True])
def test_a_merge_that_died_on_either_side_of_the_act_happens_exactly_once(
    house: House, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    run = merge_point(house, monkeypatch, after=after)
    house.reconciliation.finish()
    (proposal,) = house.proposals.all()
    assert proposal.state == "merged"
    assert house.read_main("src/a.py") == b"a = 2\n"
    merges = [c for c in house.appliance.engine.log(house.appliance.engine.branch(MAIN).head) if c.note.provenance.proposal]
    assert [commit.id for commit in merges] == [proposal.commit]
    assert merges[0].note.provenance.run == run.run
    assert list(house.trust.unconcluded()) == []
    assert house.reconciliation.finish() == [], "a second look finds nothing left to do"


def test_an_approval_whose_merge_never_began_is_carried_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = house.start()
    house.write(run, {f"many/{number}": b"x" for number in range(201)})
    document = house.proposals.propose(run, house.owner, "many")
    gate = house.trust.gate(GateId(document["gate"]))
    with monkeypatch.context() as patched:
        patched.setattr(house.proposals, "carry_out", die)
        with pytest.raises(PowerGone):
            house.gates.answer(gate.id, gate.digest, house.owner, "yes", approve=True)
    assert house.trust.gate(gate.id).state is GateState.APPROVED
    house.reconciliation.finish()
    assert house.proposals.find(document["proposal"]).state == "merged"
    assert house.trust.gate(gate.id).phase is GatePhase.CLOSED


def test_an_approval_that_died_after_it_was_used_and_before_the_merge_is_carried_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = house.start()
    house.write(run, {f"many/{number}": b"x" for number in range(201)})
    document = house.proposals.propose(run, house.owner, "many")
    gate = house.trust.gate(GateId(document["gate"]))
    with monkeypatch.context() as patched:
        patched.setattr(house.appliance.engine, "merge", die)
        with pytest.raises(PowerGone):
            house.gates.answer(gate.id, gate.digest, house.owner, "yes", approve=True)
    house.reconciliation.finish()
    assert house.proposals.find(document["proposal"]).state == "merged"
    assert house.read_main("many/1") == b"x"


def test_a_run_that_died_while_ending_is_ended(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = house.start()
    house.write(run, {"left.txt": b"x"})
    with monkeypatch.context() as patched:
        patched.setattr(house.trust, "revoke_lease", die)
        with pytest.raises(PowerGone):
            house.runs.end(run, house.owner)
    house.reconciliation.finish()
    assert house.runs.find(run.run).state == "ended"


def test_a_removal_that_died_is_found_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = house.start()
    house.runs.end(run, house.owner)
    with monkeypatch.context() as patched:
        patched.setattr(house.runs, "save", die)
        with pytest.raises(PowerGone):
            house.reclaim.collect(house.owner, dry_run=False)
    house.reconciliation.finish()
    with pytest.raises(NotFound):
        house.appliance.engine.branch(run.branch)
    assert house.reclaim.collect(house.owner, dry_run=True)["removed"] == []


def test_the_chain_verifies_after_every_recovery(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    merge_point(house, monkeypatch, after=True)
    house.reconciliation.finish()
    assert house.trust.verify().ok
    assert asdict(house.trust.verify())["first_bad"] is None


def test_what_cannot_be_found_out_is_said_and_does_not_keep_the_daemon_from_starting(house: House) -> None:
    house.trust.intend("run.end", house.owner, {"run": "r-never", "state": "ended", "reason": "x"}, house.appliance.now())
    (line,) = house.reconciliation.finish()
    assert "run.end" in line
    assert "r-never" in line
    assert list(house.trust.unconcluded()) == []
