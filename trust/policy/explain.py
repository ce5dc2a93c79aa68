"""Why a decision came out as it did: every rule that was considered, and the first condition of it that failed.

1. Says the same as `decide`, because it asks the same rules; it only keeps what `decide` throws away.
2. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trust.model import Action, Decision, Facts, Position
from trust.policy.decide import BUILT_IN, POLICY_CHANGE, RULE_OF_TWO, changes_policy, decide
from trust.policy.rules import RULE_OF_TWO_ACTIONS, CompiledPolicy, Grant, Guard, breaks_rule


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
    """Return the decision with every rule of the policy, and of what is built in, and what kept it from applying."""
    guards = tuple(_consider(rule, facts) for rule in policy.guards)
    grants = tuple(_consider(rule, facts) for rule in policy.grants)
    return Explanation(decide(policy, facts), (*guards, *_consider_built_in(policy, facts), *grants))


def _consider_built_in(policy: CompiledPolicy, facts: Facts) -> Iterator[Considered]:
    """Yield what decides without being a rule of the document, where it could be about the action."""
    three = policy.rule_of_two
    if facts.action in RULE_OF_TWO_ACTIONS:
        failed = "rule_of_two: off" if not three.enabled else "" if breaks_rule(facts) else "rule_of_two in [broken]"
        yield Considered(RULE_OF_TWO, three.position, "refuse" if three.enabled and three.ask is None else "gate", failed)
    if facts.action is Action.MERGE:
        yield Considered(POLICY_CHANGE, BUILT_IN, "gate", "" if changes_policy(facts) else "paths")


def _consider(rule: Guard | Grant, facts: Facts) -> Considered:
    kind = "grant" if isinstance(rule, Grant) else "refuse" if rule.ask is None else "gate"
    failed = rule.mismatch(facts) if facts.action in rule.actions else "actions"
    if not failed and isinstance(rule, Grant) and facts.action is Action.MERGE and facts.change is not None:
        uncovered = sum(not rule.paths.matches(path) for path in facts.change.paths)
        failed = f"paths: {uncovered} of {len(facts.change.paths)} changed paths" if uncovered else ""
    return Considered(rule.id, rule.position, kind, failed)
