"""Why a decision came out as it did: every rule that was considered, and the first condition of it that failed.

1. Says the same as `decide`, because it asks the same rules; it only keeps what `decide` throws away.
2. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from trust.model import Action, Decision, Facts, Position
from trust.policy.decide import decide
from trust.policy.rules import CompiledPolicy, Grant, Guard


@dataclass(frozen=True, slots=True)
class Considered:
    """One rule: where it stands, its kind (``grant``, ``refuse``, ``gate``), and the condition that failed (empty: it applies)."""

    rule: str
    position: Position
    kind: str
    failed: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and the rules behind it, guards first, each group ordered by id."""

    decision: Decision
    considered: tuple[Considered, ...]


def explain(policy: CompiledPolicy, facts: Facts) -> Explanation:
    """Return the decision with every rule of the policy and what kept it from applying."""
    rules: tuple[Guard | Grant, ...] = (*policy.guards, *policy.grants)
    return Explanation(decide(policy, facts), tuple(_consider(rule, facts) for rule in rules))


def _consider(rule: Guard | Grant, facts: Facts) -> Considered:
    kind = "grant" if isinstance(rule, Grant) else "refuse" if rule.ask is None else "gate"
    failed = rule.mismatch(facts) if facts.action in rule.actions else "actions"
    if not failed and isinstance(rule, Grant) and facts.action is Action.MERGE and facts.change is not None:
        uncovered = sum(not rule.paths.matches(path) for path in facts.change.paths)
        failed = f"paths: {uncovered} of {len(facts.change.paths)} changed paths" if uncovered else ""
    return Considered(rule.id, rule.position, kind, failed)
