"""After a crash: every intent without an outcome is looked up where its effect would be, and concluded.

1. An act is either found done, and recorded so, or undone, or finished now; it never happens twice. What left no trace to
   look for (a token whose secret nobody saw) is concluded as unknown.
2. Runs before the API answers. Repeats find nothing left to do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from interfaces.faults import Fault
from nasd.accounts import Accounts
from nasd.fetched import remove_leftovers
from nasd.gates import Gates
from nasd.identities.recovery import resolvers_of
from nasd.labelling import Labelling
from nasd.policy_source import adopt_from
from nasd.proposal_rules import Proposal
from nasd.proposals import Proposals
from nasd.retention import resolve_give_up, resolve_redact, resolve_seal
from nasd.runs import MAIN, Runs
from nasd.wiring import Appliance
from store.errors import NotFound, StoreError
from store.model import CommitId
from trust.errors import TrustError, Unknown
from trust.labels import parse_label
from trust.model import Digest, GateId, GatePhase, LeaseId, Record

log = logging.getLogger("nasd.reconcile")


class Reconciliation:
    """Concludes what a crash left open."""

    def __init__(self, appliance: Appliance, runs: Runs, proposals: Proposals, gates: Gates) -> None:
        """Work on the state of `appliance` through its services."""
        self._appliance = appliance
        self._runs = runs
        self._proposals = proposals
        self._gates = gates
        self._resolvers: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "run.start": self._run_start,
            "run.end": self._run_end,
            "commit": self._commit,
            "push": self._commit,
            "propose": self._propose,
            "merge": self._merge,
            "gate.open": self._gate_open,
            "gate.answer": self._gate_answer,
            "gate.bypass": self._gate_bypass,
            "branch.remove": self._branch_remove,
            "principal.add": self._principal_add,
            "principal.disable": self._principal_disable,
            "lease.revoke": self._lease_revoke,
            "policy.adopt": self._policy_adopt,
            "label.mark": self._label_mark,
            "label.unmark": self._label_lowered,
            "label.endorse": self._label_lowered,
            "account.add": self._account_add,
            "account.remove": self._account_remove,
            "egress": self._egress,
            "record.seal": lambda body: resolve_seal(appliance, int(body["first"])),
            "record.give_up": lambda body: resolve_give_up(appliance, int(body["first"])),
            "record.redact": lambda body: resolve_redact(appliance, int(body["sequence"])),
            **resolvers_of(appliance),
        }

    def finish(self) -> list[str]:
        """Conclude every open intent, then carry out decided gates and waiting merges; return a line for each."""
        lines = [self._conclude(record) for record in self._appliance.trust.unconcluded()]
        lines += remove_leftovers(self._appliance)
        lines += self._attempt("decided gates", self._gates.finish)
        for proposal in [proposal for proposal in self._proposals.all() if proposal.state == "merging"]:
            lines += self._attempt(f"proposal {proposal.proposal}", partial(self._proposals.resume, proposal))
        for line in lines:
            log.warning("recovered: %s", line)
        return lines

    def _conclude(self, record: Record) -> str:
        resolve = self._resolvers.get(record.kind)
        try:
            result = resolve(record.body) if resolve else "unknown"
        except (Fault, StoreError, TrustError) as error:
            result = f"unknown: {error}"
        self._appliance.trust.conclude(record.sequence, {"result": result, "recovered": True}, self._appliance.now())
        return f"{record.kind} (record {record.sequence}): {result}"

    def _attempt(self, what: str, act: Callable[[], Proposal | None]) -> list[str]:
        """Do one thing and return a line about it; one that cannot be done now is said and does not keep the daemon from starting."""
        try:
            done = act()
        except (Fault, StoreError, TrustError) as error:
            return [f"{what}: {error}"]
        return [f"{what}: {done.state}"] if done is not None else []

    def _run_start(self, body: Mapping[str, Any]) -> str:
        try:
            self._appliance.trust.document("run", str(body["run"]))
        except Unknown:
            return self._undo_branch(str(body["branch"]))
        return "done"

    def _undo_branch(self, name: str) -> str:
        try:
            branch = self._appliance.engine.branch(name)
        except NotFound:
            return "undone"
        self._appliance.engine.delete_branch(name, branch.head)
        return "undone"

    def _run_end(self, body: Mapping[str, Any]) -> str:
        run = self._runs.find(str(body["run"]))
        if run.state == "active":
            self._runs.end(run, None, str(body["state"]), str(body["reason"]))
        return "done"

    def _commit(self, body: Mapping[str, Any]) -> str:
        try:
            head = self._appliance.engine.branch(str(body["branch"])).head
        except NotFound:
            return "undone"
        if head == body["expected"]:
            return "undone"
        main = self._appliance.engine.branch(MAIN).head  # the crash may have come before the labels
        Labelling(self._appliance).label_range(str(body["run"]), CommitId(str(body["expected"])), head, main)
        return "done"

    def _merge(self, body: Mapping[str, Any]) -> str:
        proposal: Proposal = self._proposals.find(str(body["proposal"]))
        commit = self._proposals.find_merge(proposal.proposal, proposal.target, CommitId(str(body["expected"])))
        if commit is None:
            return "undone"
        self._proposals.record_merged(proposal, commit)
        return "done"

    def _propose(self, body: Mapping[str, Any]) -> str:
        try:
            self._proposals.find(str(body["proposal"]))
        except Fault:
            return "undone"
        return "done"

    def _gate_open(self, body: Mapping[str, Any]) -> str:
        asked = self._appliance.trust.questions.about(Digest(str(body["act"])))
        return "done" if any((gate.run, gate.rule) == (body["run"], body["rule"]) for gate in asked) else "undone"

    def _gate_answer(self, body: Mapping[str, Any]) -> str:
        gate = self._appliance.trust.gate(GateId(str(body["gate"])))
        return "done" if any(answer.by == body["by"] for answer in gate.answers) else "undone"

    def _gate_bypass(self, body: Mapping[str, Any]) -> str:
        known = [(bypass.rule, bypass.by, bypass.created) for bypass in self._appliance.trust.questions.bypasses()]
        return "done" if (body["rule"], body["by"], body["created"]) in known else "undone"

    def _principal_add(self, body: Mapping[str, Any]) -> str:
        try:
            self._appliance.trust.principal(str(body["principal"]))
        except Unknown:
            return "undone"
        return "done"

    def _principal_disable(self, body: Mapping[str, Any]) -> str:
        return "done" if self._appliance.trust.principal(str(body["principal"])).disabled else "undone"

    def _lease_revoke(self, body: Mapping[str, Any]) -> str:
        return "undone" if self._appliance.trust.lease(LeaseId(str(body["lease"]))).revoked is None else "done"

    def _account_add(self, body: Mapping[str, Any]) -> str:
        return "done" if self._has_account(str(body["account"]["name"])) else "undone"

    def _account_remove(self, body: Mapping[str, Any]) -> str:
        return "undone" if self._has_account(str(body["account"])) else "done"

    def _has_account(self, name: str) -> bool:
        return any(account.name == name for account in Accounts(self._appliance.trust).all())

    def _egress(self, body: Mapping[str, Any]) -> str:
        return f"unknown: it may have reached {body['destination']}, which alone can tell"

    def _policy_adopt(self, _: Mapping[str, Any]) -> str:
        adopt_from(self._appliance, self._appliance.engine.branch(MAIN).head)
        return "done"

    def _branch_remove(self, body: Mapping[str, Any]) -> str:
        try:
            self._appliance.engine.branch(str(body["branch"]))
        except NotFound:
            return "done"
        return "undone"

    def _label_mark(self, body: Mapping[str, Any]) -> str:
        found = [mark.label for mark in self._appliance.trust.ledger.marks() if mark.pattern == body["pattern"]]
        origin, _, sensitivity = str(body["label"]).partition("/")
        wanted = parse_label(origin, sensitivity)
        return "done" if found and wanted.within(found[0]) else "undone"

    def _label_lowered(self, body: Mapping[str, Any]) -> str:
        # The approval is spent in the same step in which the label is lowered.
        gate = self._appliance.trust.gate(GateId(str(body["gate"])))
        return "done" if gate.phase in {GatePhase.ACKNOWLEDGED, GatePhase.CLOSED} else "undone"
