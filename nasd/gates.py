"""Questions for people: answering, expiring, and carrying out what was answered.

1. An answer names the digest it read; trust lets exactly one answer count. What was approved is carried out at once.
2. An approved gate whose act did not happen because the process died is carried out at the next start.
3. Expiry applies the fallback that was frozen with the question; a late answer does not count.
"""

from __future__ import annotations

from interfaces.port import Document
from nasd.acts import recorded
from nasd.proposals import Proposals
from nasd.views import view_gate
from nasd.wiring import Appliance
from trust.model import Digest, Gate, GateId, GateState, Identity


class Gates:
    """Answers and expires gates. Any thread may call."""

    def __init__(self, appliance: Appliance, proposals: Proposals) -> None:
        """Work on the state of `appliance`; gates of proposals are carried out through `proposals`."""
        self._appliance = appliance
        self._trust = appliance.trust
        self._proposals = proposals

    def answer(self, gate: str, digest: str, identity: Identity, comment: str, *, approve: bool) -> Document:
        """Answer a gate and carry the answer out.

        Raises `trust.errors.GateClosed`, `GateMismatch` and `NotEntitled`; then nothing happened.
        """
        verdict = "approve" if approve else "reject"
        body = {"gate": gate, "digest": digest, "verdict": verdict, "comment": comment}
        with recorded(self._trust, self._appliance.clock, "gate.answer", identity, body) as outcome:
            answered = self._trust.answer_gate(GateId(gate), Digest(digest), approve, identity, comment, self._appliance.now())
            outcome["state"] = answered.state.value
        return view_gate(answered) | {"result": self.carry_out(answered, identity)}

    def carry_out(self, gate: Gate, identity: Identity | None) -> Document:
        """Do what an answered or expired gate asks for. Repeats change nothing."""
        if gate.subject.startswith("proposal:"):
            return self._proposals.gate_answered(gate, identity)
        return {"decision": gate.state.value}

    def expire(self) -> list[Gate]:
        """Expire what nobody answered in time, apply the fallbacks, and return the gates."""
        expired = list(self._trust.expire_gates(self._appliance.now()))
        for gate in expired:
            self._trust.state("gate.expired", None, {"gate": gate.id, "fallback": gate.fallback}, self._appliance.now())
            self.carry_out(gate, None)
        return expired

    def finish(self) -> None:
        """Carry out every approved gate of a proposal that a crash left behind."""
        for gate in self._trust.gates(GateState.APPROVED):
            if gate.subject.startswith("proposal:"):
                self.carry_out(gate, None)
