"""Proposals: from a branch to ``main``, or to a person, or to a reason why not.

1. What is judged is a commit: `propose` commits first and fixes the head.
2. The decision is taken anew at every step; a merge happens only when the decision of that moment allows it, with the gate
   as one of its facts. The intent of a merge is durable before the target moves, and the merge commit names the proposal:
   that is how a restart knows whether it happened.
3. Proposals of one daemon are settled one after another; the store's compare-and-set guards against everyone else.
4. A conflict or a refusal leaves both sides as they are and says which paths.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.asking import Asking
from nasd.authority import gather, policy_in_force
from nasd.checks import Check, CheckResult, run_checks, summarise
from nasd.evidence import Evidence, EvidenceRoom
from nasd.ids import make_id
from nasd.labelling import Labelling
from nasd.proposal_cards import act_of, gate_reason, likeness_of, make_card, overlapping
from nasd.proposal_rules import (
    OPEN_STATES,
    Proposal,
    Weighed,
    brief_of,
    change_facts,
    conflict_reason,
    describe_checks,
    merge_message,
    proposal_of,
)
from nasd.proposed_policy import ProposedPolicies
from nasd.runs import MAIN, Run, Runs
from nasd.trees import node_at
from nasd.views import view_conflict
from nasd.wiring import Appliance
from store.contract import Tree
from store.errors import Moved, NotFound
from store.model import Change, CommitId, Note
from store.names import find_twins
from trust.errors import AlreadyRefused, Unknown
from trust.facts import judged
from trust.gates import Question, act_digest
from trust.labels import Label
from trust.leases import actors_of
from trust.model import Action, Effect, Facts, Gate, GateId, GatePhase, GateState, Identity, PrincipalName, RunId
from trust.policy import decide

_KIND = "proposal"
_SUBJECT = "proposal:"
_MERGE_ATTEMPTS = 8


class Proposals:
    """Makes, weighs, merges and finds proposals. Any thread may call."""

    def __init__(self, appliance: Appliance, runs: Runs, policy_changed: Callable[[CommitId], None]) -> None:
        """Work on the state of `appliance`; `policy_changed` is called after a merge, with the target's head."""
        self._appliance = appliance
        self._engine = appliance.engine
        self._trust = appliance.trust
        self._runs = runs
        self._policy_changed = policy_changed
        self._asking = Asking(appliance)
        self._steering = ProposedPolicies(appliance)
        self._settling = threading.RLock()
        self._labelling = Labelling(appliance)
        self._evidence = EvidenceRoom(appliance, self._labelling)
        self._looked: dict[str, tuple[str, str, Label]] = {}

    # -- finding --------------------------------------------------------------------------------------------------

    def find(self, proposal: str) -> Proposal:
        """Return a proposal. Raises `Kind.NOT_FOUND`."""
        try:
            return proposal_of(self._trust.document(_KIND, proposal).body)
        except Unknown:
            raise Fault(Kind.NOT_FOUND, f"{proposal}: no such proposal", hint="`nas proposal list` shows them") from None

    def all(self) -> list[Proposal]:
        """Return every proposal, oldest first."""
        return sorted((proposal_of(document.body) for document in self._trust.documents(_KIND)), key=lambda proposal: proposal.proposal)

    def changes(self, proposal: Proposal) -> Sequence[Change]:
        """Return what the proposal changes."""
        return self._engine.diff(CommitId(proposal.base), CommitId(proposal.head))

    # -- proposing ------------------------------------------------------------------------------------------------

    def propose(self, run: Run, identity: Identity, message: str) -> Document:
        """Commit, check, decide and, when the policy says so, merge; what waits for people already is not asked twice.

        Raises `Kind.INVALID` when there is nothing to propose.
        """
        self._runs.commit(run, identity, message or "work proposed")
        waiting = self._waiting_at(run, self._engine.branch(run.branch).head)
        if waiting is not None:
            return self.document(waiting)
        proposal = self._draft(run, message)
        with recorded(self._trust, self._appliance.clock, "propose", identity, brief_of(proposal)) as outcome:
            self._trust.put_document(_KIND, proposal.proposal, asdict(proposal), 0)
            proposal = self._settle(run, proposal, identity, None)
            outcome |= {"state": proposal.state, "reason": proposal.reason, "policy": proposal.policy, "gate": proposal.gate}
        return self.document(proposal)

    def _waiting_at(self, run: Run, head: CommitId) -> Proposal | None:
        """Return the proposal of a run that waits for people and is about exactly this head; None when there is none."""
        for gate in self._trust.questions.all(GateState.PENDING, run=run.run):
            if gate.subject.startswith(_SUBJECT):
                proposal = self.find(gate.subject.removeprefix(_SUBJECT))
                if (proposal.head, proposal.state) == (head, "gated") and not self.successor(gate):
                    return proposal
        return None

    def _draft(self, run: Run, message: str) -> Proposal:
        head = self._engine.branch(run.branch).head
        base = self._engine.merge_base(self._engine.branch(MAIN).head, head)
        changes = self._engine.diff(base, head)
        if not changes:
            raise Fault(
                Kind.INVALID,
                f"{run.branch} has nothing that {MAIN} does not have",
                hint="change something first; `nas diff` shows what changed",
            )
        results = self._check(head, changes)
        twins = self._twins(head, changes)
        facts = change_facts(changes, len(twins), summarise(results))
        return Proposal(
            proposal=make_id("p", self._appliance.clock(), self._appliance.entropy(4)),
            run=run.run,
            branch=run.branch,
            target=MAIN,
            head=head,
            base=base or "",
            message=message,
            created=self._appliance.now(),
            state="merging",
            files=facts.files,
            deletes=facts.deletes,
            bytes=facts.bytes,
            twins=twins,
            checks=describe_checks(results),
        )

    def _check(self, head: CommitId, changes: Sequence[Change]) -> list[CheckResult]:
        policy = policy_in_force(self._trust)
        longest = self._appliance.settings.check_timeout
        due = [
            Check(check.id, tuple(check.run), min(check.timeout, longest), check.required)
            for check in policy.checks_for(tuple(change.path for change in changes))
        ]
        return run_checks(self._engine, head, due, self._appliance.settings.run / "checks") if due else []

    def _twins(self, head: CommitId, changes: Sequence[Change]) -> tuple[tuple[str, ...], ...]:
        tree = self._engine.view(head)
        folders = {change.path.rpartition(b"/")[0] for change in changes if change.new is not None}
        groups = (group for folder in sorted(folders) for group in find_twins(_names(tree, folder)))
        return tuple(tuple(name.decode("utf-8", "backslashreplace") for name in group) for group in groups)

    # -- deciding -------------------------------------------------------------------------------------------------

    def _settle(self, run: Run, proposal: Proposal, identity: Identity | None, gate: Gate | None) -> Proposal:
        """Weigh and act until the proposal has an outcome; the target may move in between, then it is weighed again."""
        with self._settling:
            proposal = self.find(proposal.proposal)
            if proposal.state not in OPEN_STATES:
                return proposal
            for _ in range(_MERGE_ATTEMPTS):
                if self._branch_moved(run, proposal):
                    return self._close(proposal, "stale", f"{run.branch} moved after the decision: propose again")
                weighed = self._weigh(run, proposal, gate)
                try:
                    return self._act(run, proposal, weighed, identity, gate)
                except Moved:
                    continue
            return self._close(proposal, "conflict", f"{proposal.target} kept moving: propose again")

    def _act(self, run: Run, proposal: Proposal, weighed: Weighed, identity: Identity | None, gate: Gate | None) -> Proposal:
        """Do what was weighed. Raises `Moved` when the target moved meanwhile; then nothing happened."""
        if weighed.conflicts:
            conflicts = tuple(view_conflict(conflict) for conflict in weighed.conflicts)
            return self._close(proposal, "conflict", conflict_reason(weighed), conflicts=conflicts)
        if trouble := self._steering.trouble(proposal, weighed.changes, weighed.target_head):
            return self._close(proposal, "refused", trouble)
        if gate is not None and act_digest(gate.subject, act_of(weighed.card)) != gate.act:
            return self._act(run, proposal, self._weigh(run, proposal, None), identity, None)  # what was approved is not what would happen
        if weighed.decision.effect is Effect.GATE:
            return self._ask(run, proposal, weighed, identity)
        policy = f"{weighed.decision.rule} ({weighed.decision.position})"
        if weighed.decision.effect is Effect.DENY:
            body = {"action": Action.MERGE.value, "proposal": proposal.proposal, "run": run.run, "rule": weighed.decision.rule}
            self._trust.state("denied", identity, body | {"judged": weighed.judged}, self._appliance.now())
            return self._close(proposal, "refused", weighed.decision.reason, policy=policy)
        decided = replace(proposal, reason=weighed.decision.reason, policy=policy)
        return self._merge(run, decided, weighed, identity, gate)

    def _weigh(self, run: Run, proposal: Proposal, gate: Gate | None) -> Weighed:
        target = self._engine.branch(proposal.target).head
        changes = self.changes(proposal)
        merged = self._engine.try_merge(target, CommitId(proposal.head))
        policy = policy_in_force(self._trust)
        overlap = overlapping(changes, self._engine.diff(CommitId(proposal.base), target)) if target != proposal.base else []
        evidence = self._evidence.of(run, changes, target)
        facts = self._gather(run, proposal, changes, evidence, gate)
        asked = decide(policy, replace(facts, gate=None))
        more = evidence.card() | self._steering.bound(proposal, changes)
        card = make_card(run, proposal, changes, overlap, asked, policy.hash, more)
        decision = asked if gate is None else decide(policy, facts)
        return Weighed(target, changes, merged.conflicts, card, decision, judged(policy.hash, facts, decision))

    def _gather(self, run: Run, proposal: Proposal, changes: Sequence[Change], evidence: Evidence, gate: Gate | None) -> Facts:
        principal = self._trust.principal(run.role)
        checks = summarise([CheckResult(c["id"], c["state"], c["required"], c["seconds"], c["output"]) for c in proposal.checks])
        return gather(
            Identity(principal, self._trust.roles(principal)),
            Action.MERGE,
            self._appliance.now(),
            change=replace(change_facts(changes, len(proposal.twins), checks), stale_reads=len(evidence.stale)),
            on_behalf_of=PrincipalName(run.owner),
            gate=gate.id if gate else None,
            protected=True,
            taint=evidence.taint,
            label=evidence.label,
        )

    def _ask(self, run: Run, proposal: Proposal, weighed: Weighed, identity: Identity | None) -> Proposal:
        """Ask people, unless everything that asks is bypassed or somebody said no to exactly this a short while ago."""
        question = self._question(run, proposal, weighed)
        policy = f"{weighed.decision.rule} ({weighed.decision.position})"
        permit = self._asking.permit(question, weighed.decision)
        if permit is not None and permit.bypasses:
            self._asking.note_bypass(permit, question, identity)
            names = ", ".join(bypass.id for bypass in permit.bypasses)
            decided = replace(proposal, reason=f"{weighed.decision.reason}; bypassed: {names}", policy=policy)
            return self._merge(run, decided, weighed, identity, None)
        try:
            gate = self._asking.ask(question, identity, weighed.judged)
        except AlreadyRefused as refused:
            return self._close(proposal, "refused", refused.why, policy=policy, gate=str(refused.subject))
        if gate.subject != question.subject:
            return self._close(proposal, "stale", f"{gate.subject.removeprefix(_SUBJECT)} asks the same already", gate=gate.id)
        return self._save(replace(proposal, state="gated", reason=weighed.decision.reason, policy=policy, gate=gate.id))

    def _question(self, run: Run, proposal: Proposal, weighed: Weighed) -> Question:
        ask = weighed.decision.ask
        assert ask is not None
        return Question(
            subject=_SUBJECT + proposal.proposal,
            act=act_of(weighed.card),
            card={**weighed.card, **self._steering.shown(proposal, weighed.changes)},
            ask=ask,
            rule=weighed.decision.rule,
            asked_by=run.role,
            run=run.run,
            on_behalf_of=run.owner,
            actors=actors_of(self._trust.leases(RunId(run.run))),
            alike=likeness_of(weighed.card),
        )

    def _merge(self, run: Run, proposal: Proposal, weighed: Weighed, identity: Identity | None, gate: Gate | None) -> Proposal:
        body = brief_of(proposal) | {"expected": weighed.target_head, "policy": proposal.policy, "gate": gate.id if gate else ""}
        body["judged"] = weighed.judged
        note = Note(merge_message(proposal), replace(run.provenance, proposal=proposal.proposal), self._appliance.now())
        with recorded(self._trust, self._appliance.clock, "merge", identity, body) as outcome:
            self._use(gate, proposal, identity)
            merged = self._engine.merge(proposal.target, weighed.target_head, CommitId(proposal.head), note)
            if merged.commit is None:
                raise Moved(proposal.target, "the target changed while the merge was weighed")
            proposal = self._save(replace(proposal, state="merged", commit=merged.commit, decided=self._appliance.now()))
            self._labelling.label_merge(weighed.changes, weighed.target_head, merged.commit)
            outcome["commit"] = merged.commit
        self._policy_changed(merged.commit)
        return proposal

    def _use(self, gate: Gate | None, proposal: Proposal, identity: Identity | None) -> None:
        """Spend an approval on this merge: from here on a restart finishes the merge instead of asking again."""
        with self._trust.transaction():
            if gate is not None and self._trust.gate(gate.id).phase is GatePhase.DECIDED:
                self._asking.acknowledge(gate, gate.act, identity)
            self._save(replace(proposal, state="merging"))

    # -- gates ----------------------------------------------------------------------------------------------------

    def carry_out(self, gate: Gate, identity: Identity | None) -> Document:
        """Carry out what was decided about a gate of a proposal. Repeats change nothing."""
        proposal = self.find(gate.subject.removeprefix(_SUBJECT))
        if proposal.state not in OPEN_STATES or proposal.gate != gate.id:
            return self.document(proposal)
        if gate.state is not GateState.APPROVED:
            return self.document(self._end(proposal, gate))
        return self.document(self._settle(self._runs.find(proposal.run), proposal, identity, gate))

    def _end(self, proposal: Proposal, gate: Gate) -> Proposal:
        """Close a proposal whose gate ended without an approval that counts."""
        with self._settling:
            proposal = self.find(proposal.proposal)
            if proposal.state not in OPEN_STATES or proposal.gate != gate.id:
                return proposal
            withdrawn = gate.state is GateState.WITHDRAWN or (gate.state is GateState.EXPIRED and gate.fallback == "withdraw")
            state = "withdrawn" if withdrawn else "stale" if gate.state is GateState.SUPERSEDED else "refused"
            return self._close(proposal, state, gate_reason(gate))

    def successor(self, gate: Gate) -> str:
        """Return what took the place of what a gate asks about: the branch moved on, or target or policy did and people are asked anew."""
        with self._settling:
            proposal = self.find(gate.subject.removeprefix(_SUBJECT))
            if proposal.state not in OPEN_STATES or proposal.gate != gate.id:
                return proposal.gate if proposal.gate != gate.id else proposal.proposal
            run = self._runs.find(proposal.run)
            head, target = self._head_of(run.branch), self._head_of(proposal.target)
            if head != proposal.head:
                return self._newer(proposal) or f"commit:{head}"
            seen = target, policy_in_force(self._trust).hash, self._trust.ledger.taint(run.run)
            if self._looked.get(gate.id) == seen:
                return ""
            if act_digest(gate.subject, act_of(self._weigh(run, proposal, None).card)) == gate.act:
                self._looked[gate.id] = seen
                return ""
            self._looked.pop(gate.id, None)
            settled = self._settle(run, proposal, None, None)
            return settled.gate if settled.gate != gate.id else settled.proposal

    def _newer(self, proposal: Proposal) -> str:
        """Return the gate of a later proposal of the same run, empty when none waits."""
        gates = self._trust.questions.all(GateState.PENDING, run=proposal.run)
        return next((gate.id for gate in reversed(gates) if gate.id != proposal.gate and gate.subject.startswith(_SUBJECT)), "")

    def resume(self, proposal: Proposal) -> Proposal:
        """Finish a proposal that a restart found half done."""
        gate = self._trust.gate(GateId(proposal.gate)) if proposal.gate else None
        if gate is not None and gate.state is GateState.PENDING:
            return proposal
        if gate is not None and gate.state is not GateState.APPROVED:
            return self._end(proposal, gate)
        return self._settle(self._runs.find(proposal.run), proposal, None, gate)

    def withdraw(self, proposal: Proposal, identity: Identity, comment: str) -> Document:
        """Take back a proposal that still waits. Raises `Kind.CONFLICT` when it no longer does."""
        if proposal.state != "gated":
            raise Fault(Kind.CONFLICT, f"{proposal.proposal} is {proposal.state}", hint="only a waiting proposal can be withdrawn")
        with recorded(
            self._trust, self._appliance.clock, "proposal.withdraw", identity, {"proposal": proposal.proposal, "comment": comment}
        ):
            why = comment or "the proposal was withdrawn"
            gate = self._trust.questions.withdraw(GateId(proposal.gate), why, self._appliance.now())
            closed = self._close(proposal, "withdrawn", comment or "withdrawn")
            self._asking.close(gate, "withdrawn", identity)
            return self.document(closed)

    def find_merge(self, proposal: str, target: str, expected: CommitId) -> CommitId | None:
        """Return the commit that merged a proposal into `target` after `expected`, None when there is none."""
        for commit in self._engine.log(self._engine.branch(target).head):
            if commit.note.provenance.proposal == proposal and len(commit.parents) > 1:
                return commit.id
            if commit.id == expected:
                return None
        return None

    def record_merged(self, proposal: Proposal, commit: CommitId) -> Proposal:
        """Note a merge that happened before a crash."""
        self._policy_changed(commit)
        return self._save(replace(proposal, state="merged", commit=commit, decided=self._appliance.now()))

    # -- storing --------------------------------------------------------------------------------------------------

    def _branch_moved(self, run: Run, proposal: Proposal) -> bool:
        return self._head_of(run.branch) != proposal.head

    def _head_of(self, branch: str) -> str:
        """Return the head of a branch, empty when the branch is gone."""
        try:
            return self._engine.branch(branch).head
        except NotFound:
            return ""

    def _close(self, proposal: Proposal, state: str, reason: str, **more: Any) -> Proposal:
        self._looked.pop(proposal.gate, None)
        return self._save(replace(proposal, state=state, reason=reason, decided=self._appliance.now(), **more))

    def _save(self, proposal: Proposal) -> Proposal:
        document = self._trust.document(_KIND, proposal.proposal)
        self._trust.put_document(_KIND, proposal.proposal, asdict(proposal), document.version)
        return proposal

    def document(self, proposal: Proposal) -> Document:
        """Return the document of a proposal; `decision` is its state in the words scripts rely on."""
        decision = "refused" if proposal.state in ("stale", "withdrawn") else proposal.state
        return asdict(proposal) | {"decision": decision}


def _names(tree: Tree, folder: bytes) -> list[bytes]:
    return [name for name, _ in tree.list(node_at(tree, folder))]
