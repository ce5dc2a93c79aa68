"""Asking people about reads: by what a run would know, not by file, so that a search through a tree is one question.

A question is about the run, the rules that ask, and the label that the run's taint would have; a rule other than the Rule of Two asks about
the path too. A yes stands for repeats as long as the rule says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nasd.asking import Asking
from nasd.paths import render_path
from nasd.wiring import Appliance
from trust.facts import judged
from trust.gates import Question
from trust.labels import Label
from trust.model import Decision, Facts, Identity
from trust.policy import CompiledPolicy, decide
from trust.policy.decide import RULE_OF_TWO
from trust.policy.rules import combined_label


class ReadQuestions:
    """Answers reads that rules ask about. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Ask in the state of `appliance`."""
        self._asking = Asking(appliance)

    def answer(self, identity: Identity, policy: CompiledPolicy, facts: Facts, decision: Decision) -> Decision:
        """Return what people have said to a read that rules ask about. Raises `Kind.GATED` while they have not answered."""
        question = question_to_read(identity, policy, facts, decision)
        permit = self._asking.permit(question, decision)
        if permit is None:
            raise self._asking.gated(self._asking.ask(question, identity, judged(policy.hash, facts, decision)), decision)
        if permit.gate is None:
            self._asking.note_bypass(permit, question, identity)
        return decide(policy, replace(facts, gate=permit.id))


def question_to_read(identity: Identity, policy: CompiledPolicy, facts: Facts, decision: Decision) -> Question:
    """Return the question that a read asks."""
    assert identity.lease is not None and decision.ask is not None
    lease = identity.lease
    reached = combined_label(facts)
    shown = render_path(facts.path)
    asking = decision.asking or (decision.rule,)
    act: dict[str, Any] = {"verb": "read", "lease": lease.id, "rules": list(asking), "reached": str(reached), "policy": policy.hash}
    if set(asking) != {RULE_OF_TWO}:
        act["path"] = shown
    card = {
        "what": f"read {shown}",
        "who": identity.principal.name,
        "on_behalf_of": lease.on_behalf_of,
        "actors": list(lease.scope.actors),
        "purpose": lease.scope.purpose,
        "why": f"{lease.run} would then have read {reached} content",
        "asks": decision.reason,
        "rule": f"{decision.rule} ({decision.position})",
        "policy": policy.hash,
        "lease": lease.id,
        "labels": _words(facts.label) | {"paths": [shown]},
        "taint": _words(facts.taint),
        "on_approve": f"this run may read what is labelled up to {reached}, and all it writes from then on carries that label",
        "on_reject": "the read is refused; the run goes on without it",
        "on_silence": "the read stays refused",
    }
    return Question(
        f"read:{lease.run}",
        act,
        card,
        decision.ask,
        decision.rule,
        identity.principal.name,
        run=lease.run,
        on_behalf_of=lease.on_behalf_of,
        actors=lease.scope.actors,
        standing=True,
    )


def _words(label: Label) -> dict[str, Any]:
    return {"origin": label.origin.name.lower(), "sensitivity": label.sensitivity.name.lower()}
