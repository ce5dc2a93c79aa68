"""The values a compiled policy is made of, and the first condition of a rule that facts do not meet.

1. A rule is a conjunction: who, action, path, conditions. Disjunction is a second rule.
2. `mismatch` functions return the name of the first condition that fails, empty when all hold. They run on every decision, so
   they do as little as they can.
3. Pure: no I/O, no clock, no regular expressions.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from trust.labels import DEFAULT, Label, breaks_rule_of_two, join
from trust.model import Action, Ask, BudgetKind, Facts, Position, PrincipalKind
from trust.policy.patterns import PathSet, matches_any

OWNER = "owner"
"""The role that can always repair the policy, and that answers any gate."""


class Operator(enum.Enum):
    """How a condition compares: the whole set."""

    AT_MOST = "at_most"
    AT_LEAST = "at_least"
    EQUALS = "equals"
    IN = "in"


CHANGE_SUBJECTS = frozenset({"files", "bytes", "deletes", "twins", "checks", "stale_reads"})
"""What conditions about a proposed change look at: fields of `ChangeFacts`."""
WORD_SUBJECTS = {
    "origin": frozenset({"owner", "internal", "external"}),
    "sensitivity": frozenset({"public", "internal", "sensitive"}),
    "destination": frozenset({"declared", "undeclared"}),
    "rule_of_two": frozenset({"kept", "broken"}),
}
"""What conditions about labels look at, and the words each can be."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison: `subject` is one of `CHANGE_SUBJECTS` or of `WORD_SUBJECTS`."""

    subject: str
    operator: Operator
    number: int = 0
    words: frozenset[str] = frozenset()

    def holds(self, facts: Facts) -> bool:
        """Tell whether the facts meet the condition. One about a change holds for no act without one."""
        if self.subject in WORD_SUBJECTS:
            return word_of(self.subject, facts) in self.words
        if facts.change is None:
            return False
        value = getattr(facts.change, self.subject)
        if self.operator is Operator.IN:
            return value in self.words
        if self.operator is Operator.AT_MOST:
            return bool(value <= self.number)
        if self.operator is Operator.AT_LEAST:
            return bool(value >= self.number)
        return bool(value == self.number)

    def __str__(self) -> str:
        """Return the condition as it is written in a policy."""
        wanted = "[" + ", ".join(sorted(self.words)) + "]" if self.operator is Operator.IN else str(self.number)
        return f"{self.subject} {self.operator.value} {wanted}"


def combined_label(facts: Facts) -> Label:
    """Return the join of what the run has read and what the act is about."""
    return join(facts.taint, facts.label)


def word_of(subject: str, facts: Facts) -> str:
    """Return the word that a condition about labels compares."""
    if subject == "origin":
        return combined_label(facts).origin.name.lower()
    if subject == "sensitivity":
        return combined_label(facts).sensitivity.name.lower()
    if subject == "destination":
        return "declared" if is_declared(facts) else "undeclared"
    return "broken" if breaks_rule(facts) else "kept"


def is_declared(facts: Facts) -> bool:
    """Tell whether whoever gave the lease named the account that the act goes to."""
    return facts.lease is not None and bool(facts.destination) and matches_any(facts.lease.destinations, facts.destination.encode())


def breaks_rule(facts: Facts) -> bool:
    """Tell whether the act would complete the three of the Rule of Two.

    A merge and an outward act are the third by themselves. Reading what adds nothing to the taint completes nothing.
    """
    if facts.action not in RULE_OF_TWO_ACTIONS or (facts.action is Action.READ and facts.label.within(facts.taint)):
        return False
    return breaks_rule_of_two(combined_label(facts), facts.outward or facts.action in {Action.MERGE, Action.EGRESS})


RULE_OF_TWO_ACTIONS = frozenset({Action.READ, Action.MERGE, Action.EGRESS, Action.START})
"""The acts at which the Rule of Two is looked at: each that can bring the third of the three."""


@dataclass(frozen=True, slots=True)
class Who:
    """Whom a rule is about. Empty and None stand for anyone; everything else must include the facts."""

    kinds: frozenset[PrincipalKind] = frozenset()
    principals: PathSet | None = None
    roles: frozenset[str] = frozenset()
    on_behalf_of: PathSet | None = None

    def mismatch(self, facts: Facts) -> str:
        """Return ``kinds``, ``roles``, ``principals`` or ``on_behalf_of`` for the first that excludes the facts, else empty."""
        if self.kinds and facts.kind not in self.kinds:
            return "kinds"
        if self.roles and self.roles.isdisjoint(facts.roles):
            return "roles"
        if self.principals is not None and not _includes(self.principals, facts.principal):
            return "principals"
        if self.on_behalf_of is not None and not _includes(self.on_behalf_of, facts.on_behalf_of):
            return "on_behalf_of"
        return ""


def _includes(names: PathSet, name: str) -> bool:
    return names.matches(name.encode("utf-8", "surrogateescape"))


@dataclass(frozen=True, slots=True)
class Limits:
    """The envelope within which a lease is issued at once: seconds to live and budgets; None and missing mean no limit.

    Each set of patterns in `destinations` has to cover every account that the lease names.
    """

    ttl: int | None = None
    budgets: Mapping[BudgetKind, int] = field(default_factory=dict)
    destinations: tuple[tuple[str, ...], ...] = ()

    def tightened(self, other: Limits) -> Limits:
        """Return what both allow."""
        ttls = [ttl for ttl in (self.ttl, other.ttl) if ttl is not None]
        budgets = dict(self.budgets)
        for kind, amount in other.budgets.items():
            budgets[kind] = min(amount, budgets.get(kind, amount))
        return Limits(min(ttls, default=None), budgets, (*self.destinations, *other.destinations))


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that widens."""

    id: str
    position: Position
    who: Who
    actions: frozenset[Action]
    paths: PathSet
    when: tuple[Condition, ...] = ()
    limits: Limits = Limits()

    def mismatch(self, facts: Facts) -> str:
        """Return what excludes the facts (for a change: leaving its paths aside), else empty."""
        excluded = self.who.mismatch(facts)
        if not excluded and facts.action is not Action.MERGE and facts.path is not None and not self.paths.matches(facts.path):
            return "paths"
        return excluded or (failed_condition(self.when, facts) if self.when else "")


@dataclass(frozen=True, slots=True)
class Guard:
    """A rule that tightens: it refuses, or (with `ask`) it asks people first."""

    id: str
    position: Position
    who: Who
    actions: frozenset[Action]
    paths: PathSet
    when: tuple[Condition, ...]
    ask: Ask | None
    reason: str

    def mismatch(self, facts: Facts) -> str:
        """Return what excludes the facts, else empty. One changed path is enough for a change."""
        return self.who.mismatch(facts) or self._missed_paths(facts) or failed_condition(self.when, facts)

    def touched(self, facts: Facts) -> bytes | None:
        """Return the first path of the facts the guard is about, or None when it is about every path."""
        if self.paths.everything:
            return None
        paths = facts.change.paths if facts.change is not None else (facts.path,)
        return next((path for path in paths if path is not None and self.paths.matches(path)), None)

    def _missed_paths(self, facts: Facts) -> str:
        if self.paths.everything:
            return ""
        if facts.change is not None and facts.action is Action.MERGE:
            return "" if any(self.paths.matches(path) for path in facts.change.paths) else "paths"
        return "" if facts.path is None or self.paths.matches(facts.path) else "paths"


@dataclass(frozen=True, slots=True)
class Check:
    """A command whose result is part of a proposal; it runs when one of `paths` changed."""

    id: str
    position: Position
    run: tuple[str, ...]
    paths: PathSet
    timeout: int
    required: bool


@dataclass(frozen=True, slots=True)
class LabelRule:
    """A label that the policy puts on paths. With `names`, knowing what is there counts as reading it."""

    position: Position
    paths: PathSet
    label: Label
    names: bool


@dataclass(frozen=True, slots=True)
class RuleOfTwo:
    """What happens when all three come together: `ask` people, or (None) refuse; `enabled` is false where the policy turns it off."""

    position: Position
    ask: Ask | None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy ready for decisions. Make one with `trust.policy.compile_policy`.

    The rules of each action are ordered by id, so that the order of the document decides nothing, not even which rule is named.
    """

    source: str
    hash: str
    roles: Mapping[str, frozenset[str]]
    grants: tuple[Grant, ...]
    guards: tuple[Guard, ...]
    checks: tuple[Check, ...]
    labels: tuple[LabelRule, ...]
    labelled: PathSet
    """Every path that a label rule is about: nearly all are asked in vain, and cost one question."""
    rule_of_two: RuleOfTwo
    grants_of: Mapping[Action, tuple[Grant, ...]]
    refusals_of: Mapping[Action, tuple[Guard, ...]]
    gates_of: Mapping[Action, tuple[Guard, ...]]
    grants_at: Position
    roles_at: Position

    def roles_of(self, principal: str) -> frozenset[str]:
        """Return the roles that the policy gives a principal."""
        return frozenset(role for role, members in self.roles.items() if principal in members)

    def label_of(self, path: bytes) -> Label:
        """Return the label that the policy puts on a path, `DEFAULT` where it puts none."""
        label = None
        for rule in self.labels:
            if rule.paths.matches(path):
                label = rule.label if label is None else join(label, rule.label)
        return DEFAULT if label is None else label

    @property
    def labels_names(self) -> bool:
        """Tell whether knowing names can count as reading anywhere."""
        return any(rule.names for rule in self.labels)

    def label_of_names(self, directory: bytes) -> Label:
        """Return the label of knowing what is in a directory."""
        label = DEFAULT
        for rule in self.labels:
            if rule.names and rule.paths.matches(directory):
                label = join(label, rule.label)
        return label

    def label_below(self, directory: bytes) -> Label:
        """Return the join of all labels that something at or below a directory may have from the policy."""
        label = self.label_of(directory)
        for rule in self.labels:
            if rule.paths.may_match_below(directory):
                label = join(label, rule.label)
        return label

    def uniform_below(self, action: Action, directory: bytes) -> bool:
        """Tell whether all names directly in a directory get the same answer from every rule of an action."""
        rules: tuple[Grant | Guard, ...] = (*self.grants_of[action], *self.refusals_of[action], *self.gates_of[action])
        return all(rule.paths.uniform_below(directory) for rule in rules)

    def same_below(self, one: bytes, other: bytes) -> bool:
        """Tell whether every rule says the same of what is below one directory as if it were below another: a move changes no right."""
        rules: tuple[Grant | Guard, ...] = (*self.grants, *self.guards)
        return all(rule.paths.same_below(one, other) for rule in rules)

    def may_grant_below(self, action: Action, directory: bytes) -> bool:
        """Tell whether a grant of an action could be about something below a directory, whoever it is for."""
        return any(grant.paths.may_match_below(directory) for grant in self.grants_of[action])

    def checks_for(self, changed: tuple[bytes, ...]) -> tuple[Check, ...]:
        """Return the checks that a change of these paths asks for, ordered by id."""
        return tuple(check for check in self.checks if any(check.paths.matches(path) for path in changed))


def failed_condition(when: tuple[Condition, ...], facts: Facts) -> str:
    """Return the first condition that the facts do not meet, in words, else empty."""
    for condition in when:
        if not condition.holds(facts):
            return str(condition)
    return ""
