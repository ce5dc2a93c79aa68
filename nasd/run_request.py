"""What a run asks for, and what people are asked when that is more than the policy gives at once. Pure.

1. A request outside of the envelope is one question for the same request of the same person under the same policy; its approval starts
   exactly that run.
2. A request may name the gate that was approved for it; one that was approved for something else starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from interfaces.faults import Fault, Kind
from nasd.asking import Permit
from trust.gates import Question, act_digest, describe_end, releases
from trust.labels import Label
from trust.model import USUAL, Action, BudgetKind, Decision, Gate, GateState, Scope
from trust.policy import Limits

DAY = 86400


@dataclass(frozen=True, slots=True)
class Request:
    """What a run asks for; `ttl` is in seconds, None leaves it to the policy. The rest is what `trust.model.Scope` says of it."""

    role: str
    paths: tuple[str, ...] = ("**",)
    actions: frozenset[Action] = USUAL
    ttl: int | None = None
    purpose: str = ""
    budgets: Mapping[BudgetKind, int] | None = None
    gate: str | None = None
    destinations: tuple[str, ...] = ()
    doors: frozenset[str] | None = None
    ceiling: Label | None = None
    actors: tuple[str, ...] = ()
    holder: str = ""
    depth: int | None = None

    def scope(self, now: int) -> Scope:
        """Return the scope of the lease when it starts now."""
        return Scope(
            self.paths,
            self.actions,
            now,
            now + (self.ttl or DAY),
            self.purpose,
            dict(self.budgets or {}),
            self.destinations,
            self.doors,
            self.ceiling,
            self.actors,
            self.holder,
            self.depth,
        )

    def filled(self, limits: Limits) -> Request:
        """Return the request with what it left open set to what the policy gives at once."""
        ttl = self.ttl or min(DAY, limits.ttl or DAY)
        return replace(self, ttl=ttl, budgets=dict(limits.budgets) | dict(self.budgets or {}))

    def card(self, owner: str) -> dict[str, Any]:
        """Return what a gate shows and binds: everything that is asked for, nothing that depends on when."""
        return {
            "what": f"start a run of {self.role}",
            "role": self.role,
            "on_behalf_of": owner,
            "purpose": self.purpose,
            "paths": sorted(self.paths),
            "actions": sorted(action.value for action in self.actions),
            "ttl": self.ttl,
            "budgets": {kind.value: amount for kind, amount in sorted((self.budgets or {}).items(), key=lambda item: item[0].value)},
            "destinations": sorted(self.destinations),
            **self._limits(),
        }

    def _limits(self) -> dict[str, Any]:
        """Return the limits that most requests leave open, where this one does not."""
        limits = {
            "doors": sorted(self.doors or ()),
            "ceiling": str(self.ceiling or ""),
            "actors": list(self.actors),
            "holder": self.holder,
            "depth": self.depth,
        }
        return {name: value for name, value in limits.items() if value not in ([], "", None)}


def question_of(request: Request, owner: str, decision: Decision, policy: str) -> Question:
    """Return the question about a request of `owner` that a rule asks about, under the policy of this hash."""
    assert decision.ask is not None
    asked = request.card(owner)
    card = asked | {
        "who": request.role,
        "asks": decision.reason,
        "rule": f"{decision.rule} ({decision.position})",
        "on_approve": "the same request starts the run",
        "on_reject": "no run is started",
        "on_silence": "no run is started",
    }
    act = {"verb": "start", "policy": policy} | asked
    return Question(
        f"start:{request.role}", act, card, decision.ask, decision.rule, owner, on_behalf_of=owner, actors=(request.role, *request.actors)
    )


def named_permit(gate: Gate, question: Question, now: int) -> Permit:
    """Return the gate that a request names as its permit. Raises what is wrong with it."""
    if gate.act != act_digest(question.subject, question.act):
        raise Fault(Kind.PRECONDITION, f"gate {gate.id} was asked for another request", hint="repeat exactly the request it shows")
    if gate.state is GateState.PENDING:
        raise Fault(Kind.GATED, f"gate {gate.id} still waits for {gate.required_role}", gate=gate.id, hint="`nas gate list` shows it")
    if not releases(gate, now):
        raise Fault(Kind.DENIED, f"gate {gate.id}: {describe_end(gate, now)}", hint="ask again")
    return Permit(gate.id, gate)
