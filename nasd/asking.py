"""Asking people, in whatever process the act is: the daemon, a gateway, a mount.

1. An act that has to be asked about is decided twice: before the question, and with its answer as a fact when it is carried out. What was
   approved is exactly the act of the question; anything else is another question.
2. A question is announced, opened and (when there are targets) put into the outbox in one step; a repeat finds the gate it opened before.
3. An approval is taken over by compare-and-set before the act and closed with what came of it after; so is an act under a bypass recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from interfaces.faults import Fault, Kind
from nasd.acts import recorded
from nasd.authority import policy_in_force
from nasd.outbox import enqueue
from nasd.wiring import Appliance
from trust.gates import Question, act_digest, exclude
from trust.model import Ask, Bypass, Decision, Digest, Gate, GateId, GatePhase, Identity, PrincipalKind
from trust.policy.rules import OWNER

_NAMED = 10
"""How many of those who can answer a card names."""


@dataclass(frozen=True, slots=True)
class Permit:
    """What lets an act happen that a rule asks about: an approved gate, or a bypass of every such rule.

    `id` is what the facts of the second decision name.
    """

    id: GateId
    gate: Gate | None = None
    bypasses: tuple[Bypass, ...] = ()


class Asking:
    """Opens questions and uses answers. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Ask in the state of `appliance`."""
        self._appliance = appliance
        self._trust = appliance.trust

    def ask(self, question: Question, identity: Identity | None, judged: Mapping[str, Any] | None = None) -> Gate:
        """Return the gate of a question, opening it when it is not open yet; durable and recorded, with the decision that asks.

        Raises `trust.errors.AlreadyRefused`, `TooManyQuestions` and `ScopeInvalid`.
        """
        now = self._appliance.now()
        known = self._trust.questions.known(question, now)
        if known is not None:
            return known
        candidates = self._candidates(question.ask.required_role)
        excluded = exclude(question, candidates)
        question = replace(question, card=dict(question.card) | {"who_can": _name_those(sorted(set(candidates) - excluded), question.ask)})
        body: dict[str, Any] = {
            "subject": question.subject,
            "act": act_digest(question.subject, question.act),
            "rule": question.rule,
            "run": question.run,
        }
        body |= {"judged": judged} if judged else {}
        with recorded(self._trust, self._appliance.clock, "gate.open", identity, body) as outcome, self._trust.transaction():
            gate, opened = self._trust.questions.ask(question, excluded, now)
            outcome |= {"gate": gate.id, "digest": gate.digest}
            if opened:
                enqueue(self._appliance, "asked", gate, now)
        return gate

    def permit(self, question: Question, decision: Decision) -> Permit | None:
        """Return what lets exactly this act of this run happen although a rule asks; None when people have to be asked."""
        now = self._appliance.now()
        gate = self._trust.questions.approved(question.subject, question.act, question.run, now)
        if gate is not None:
            return Permit(gate.id, gate)
        bypasses = self._trust.questions.covering(decision.asking, policy_in_force(self._trust).hash, now)
        return Permit(bypasses[0].id, bypasses=bypasses) if bypasses else None

    def gated(self, gate: Gate, decision: Decision) -> Fault:
        """Return the fault of an act that waits for people."""
        return Fault(
            Kind.GATED,
            f"{gate.card.get('what', gate.subject)}: {decision.reason}",
            gate=gate.id,
            policy=f"{decision.rule} ({decision.position})",
            hint=f"when {gate.required_role} approved {gate.id}, repeat exactly this; `nas gate wait {gate.id}` tells when",
        )

    @contextmanager
    def using(self, permit: Permit | None, question: Question, identity: Identity | None) -> Iterator[dict[str, Any]]:
        """Run the act of a question as the block: its answer is taken over before, and closed after with the ``result`` that it notes.

        Raises `trust.errors.GateClosed` and `GateMismatch` before the block when the approval does not count for this act any more.
        """
        outcome: dict[str, Any] = {}
        if permit is None:
            yield outcome
            return
        act = act_digest(question.subject, question.act)
        if permit.gate is None:
            self.note_bypass(permit, question, identity)
            yield outcome
            return
        gate = self.acknowledge(permit.gate, act, identity)
        try:
            yield outcome
        except Exception:
            self.close(gate, "failed", identity)
            raise
        self.close(gate, str(outcome.get("result", "done")), identity)

    def note_bypass(self, permit: Permit, question: Question, identity: Identity | None) -> None:
        """Record, durably, that an act happens under bypasses."""
        act = act_digest(question.subject, question.act)
        for bypass in permit.bypasses:
            body = {"bypass": bypass.id, "rule": bypass.rule, "subject": question.subject, "act": act, "run": question.run}
            with self._trust.transaction():
                self._trust.state("gate.bypassed", identity, body | {"by": bypass.by}, self._appliance.now())

    def acknowledge(self, gate: Gate, act: Digest, identity: Identity | None) -> Gate:
        """Take an approval over: from here on nobody else can use it. Raises `GateClosed`, `GateMismatch`."""
        now = self._appliance.now()
        with self._trust.transaction():
            taken = self._trust.questions.acknowledge(gate.id, act, now)
            if taken.acknowledged != gate.acknowledged:
                self._trust.state(
                    "gate.acknowledged", identity, {"gate": gate.id, "run": gate.run, "subject": gate.subject, "act": act}, now
                )
        return taken

    def close(self, gate: Gate, outcome: str, identity: Identity | None) -> Gate:
        """Note what came of a gate; repeats change nothing."""
        now = self._appliance.now()
        if gate.phase is GatePhase.CLOSED:
            return gate
        with self._trust.transaction():
            before = self._trust.questions.find(gate.id)
            closed = self._trust.questions.close(gate.id, outcome, now)
            if before.phase is not GatePhase.CLOSED:
                body = {"gate": gate.id, "run": gate.run, "state": closed.state.value, "outcome": closed.outcome}
                self._trust.state("gate.closed", identity, body, now)
        return closed

    def _candidates(self, role: str) -> list[str]:
        """Return the names of those who could answer by their roles."""
        people = (person for person in self._trust.principals() if not person.disabled and person.kind is not PrincipalKind.AGENT)
        return [person.name for person in people if not self._trust.roles(person).isdisjoint({role, OWNER})]


def _name_those(able: Sequence[str], ask: Ask) -> str:
    """Return in words who can answer, so that a question that nobody can is not waited for."""
    named = ", ".join(able[:_NAMED]) + (f" and {len(able) - _NAMED} more" if len(able) > _NAMED else "")
    if len(able) >= ask.approvals:
        return named
    return f"{named or 'nobody'}: {ask.approvals} with the role {ask.required_role} are needed, and it ends at its deadline"
