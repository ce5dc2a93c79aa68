"""What another policy would decide differently, with a case in point for everything.

1. Both policies are asked about every cell that they tell apart together (`trust.policy.abstraction`). Without differences, and `complete`,
   they decide alike for all facts, labels and roles being facts.
2. What policies give as facts is compared by itself: roles, labels of paths, checks.
3. Every difference carries facts on which `decide` really differs; nothing is reported that it does not confirm.
4. Pure and deterministic.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trust.labels import Label
from trust.model import LEASABLE, Action, Ask, BudgetKind, Decision, Effect, Facts, Scope
from trust.policy.abstraction import Cell, Space, make_space
from trust.policy.classes import name_classes, path_classes
from trust.policy.covering import covered
from trust.policy.decide import decide
from trust.policy.outcomes import Verdict, living_grants, make_reader
from trust.policy.patterns import path_set
from trust.policy.rules import Check, CompiledPolicy, Grant, Guard, Limits

MOST_REQUESTS = 20_000
"""How many requested leases are tried."""
_ORDER = {Effect.DENY: 0, Effect.GATE: 1, Effect.ALLOW: 2}


class Direction(enum.Enum):
    """Which way a decision moves; `ASKS` is a question that goes to others, or under other terms."""

    WIDER = "wider"
    NARROWER = "narrower"
    ASKS = "asks"


@dataclass(frozen=True, slots=True)
class Difference:
    """Decisions about one action that move alike: a case in point, what is said of it before and after, and how many cells do."""

    action: Action
    direction: Direction
    facts: Facts
    before: Decision
    after: Decision
    cells: int = 1


@dataclass(frozen=True, slots=True)
class LabelDifference:
    """A path (of a class) that is labelled otherwise; with `names`, as knowing what is there is."""

    path: bytes
    before: Label
    after: Label
    names: bool = False


@dataclass(frozen=True, slots=True)
class RoleDifference:
    """Who gets and who loses a role."""

    role: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckDifference:
    """A check that comes (`before` is None), goes (`after` is None) or changes."""

    before: Check | None
    after: Check | None


@dataclass(frozen=True, slots=True)
class RuleDifference:
    """A rule that is ``added``, ``removed`` or ``changed``, and in what: how it is written, whether or not it decides otherwise."""

    rule: str
    change: str
    what: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyDiff:
    """Everything that another policy would do differently; exact when `complete`, else of a part of all cases."""

    decisions: tuple[Difference, ...]
    labels: tuple[LabelDifference, ...]
    roles: tuple[RoleDifference, ...]
    checks: tuple[CheckDifference, ...]
    rules: tuple[RuleDifference, ...]
    cells: int
    complete: bool

    @property
    def equal(self) -> bool:
        """Tell whether the two decide alike, however they are written."""
        return not (self.decisions or self.labels or self.roles or self.checks)


def compare_policies(before: CompiledPolicy, after: CompiledPolicy) -> PolicyDiff:
    """Return what `after` would do differently."""
    found: dict[object, Difference] = {}
    cells, complete = 0, True
    for action in Action:
        space = make_space((before, after), action)
        comparison = _Comparison(before, after, space)
        for difference in comparison.differences():
            kept = found.get(key := _group(difference))
            found[key] = difference if kept is None else replace(kept, cells=kept.cells + 1)
        cells += len(space.cells)
        complete &= space.complete and comparison.complete
    labels, labels_complete = _compare_labels(before, after)
    return PolicyDiff(
        tuple(sorted(found.values(), key=_rank)),
        labels,
        tuple(_compare_roles(before, after)),
        tuple(_compare_checks(before, after)),
        tuple(_compare_rules(before, after)),
        cells,
        complete and labels_complete,
    )


def _rank(difference: Difference) -> tuple[int, int, int]:
    return list(Direction).index(difference.direction), list(Action).index(difference.action), -difference.cells


def _group(difference: Difference) -> object:
    """Return what differences must share to be told as one: the act, both effects, and the rule of the stricter side."""
    before, after = difference.before, difference.after
    if difference.direction is Direction.ASKS:
        return difference.action, before.ask, after.ask
    stricter = before if difference.direction is Direction.WIDER else after
    return difference.action, before.effect, after.effect, stricter.rule


class _Comparison:
    """Two policies over one space."""

    def __init__(self, before: CompiledPolicy, after: CompiledPolicy, space: Space) -> None:
        self._before, self._after, self._space = before, after, space
        self._read_before, self._read_after = make_reader(before, space).read, make_reader(after, space).read
        self._paths = sorted({path for cell in space.cells if cell.facts.change for path in cell.facts.change.paths})
        self._requests = 0
        self.complete = True

    def differences(self) -> Iterator[Difference]:
        """Yield one difference for each cell that has one."""
        for cell in self._space.cells:
            before, after = self._read_before(cell.applying), self._read_after(cell.applying)
            if self._space.action is Action.START:
                if before != after or before.verdict is Verdict.ALLOWED:
                    yield from self._first(self._with_requests(cell, inside=before != after))
            elif before != after:
                yield from self._first(self._with_partners(cell, {before.verdict, after.verdict}))

    def _first(self, cases: Iterable[Facts]) -> Iterator[Difference]:
        """Yield the difference of the first case that `decide` confirms."""
        for facts in cases:
            before, after = decide(self._before, facts), decide(self._after, facts)
            if _essence(before) != _essence(after):
                yield Difference(facts.action, _direction(before, after), facts, before, after)
                return

    def _with_partners(self, cell: Cell, verdicts: set[Verdict]) -> Iterator[Facts]:
        """Yield the facts of a cell, and where a refusal became the lack of a grant, beside a path that is asked about."""
        yield cell.facts
        change = cell.facts.change
        if change is not None and verdicts == {Verdict.REFUSED, Verdict.UNGRANTED}:
            for path in self._paths:
                yield replace(cell.facts, change=replace(change, paths=(*change.paths, path)))

    # -- requested leases -----------------------------------------------------------------------------------------

    def _with_requests(self, cell: Cell, inside: bool) -> Iterator[Facts]:
        """Yield the facts of a cell with requests on which the two envelopes could differ; with `inside`, also within both."""
        grants = [living_grants(policy, self._space, cell.applying) for policy in (self._before, self._after)]
        for action in sorted(LEASABLE, key=lambda each: each.value):
            for pattern in sorted({"**", *_texts((*grants[0], *grants[1]), action)}):
                self._requests += 1
                if self._requests > MOST_REQUESTS:
                    self.complete = False
                    return
                limits = [_limits(each, action, pattern) for each in grants]
                for scope in _requests(action, pattern, *limits, inside=inside):
                    yield replace(cell.facts, request=scope)
            self.complete &= _compared_exactly(_texts(grants[0], action), _texts(grants[1], action))


def _texts(grants: Iterable[Grant], action: Action) -> set[str]:
    return {pattern.text for grant in grants if action in grant.actions for pattern in grant.paths.patterns}


def _limits(grants: Iterable[Grant], action: Action, pattern: str) -> Limits | None:
    """Return the envelope of a request, None when no grant gives it."""
    giving = [grant for grant in grants if action in grant.actions and covered((each.text for each in grant.paths.patterns), pattern)]
    limits = Limits()
    for grant in giving:
        limits = limits.tightened(grant.limits)
    return limits if giving else None


def _requests(action: Action, pattern: str, before: Limits | None, after: Limits | None, *, inside: bool) -> Iterator[Scope]:
    """Yield the requests that one envelope holds and the other does not."""
    nothing = dict.fromkeys(BudgetKind, 0)
    smallest = Scope((pattern,), frozenset({action}), 0, 1, budgets=nothing)
    if inside or (before is None) != (after is None):
        yield smallest
    if before is None or after is None:
        return
    if before.ttl != after.ttl:
        yield replace(smallest, expires=_beside(before.ttl, after.ttl) + 1)
    for kind in BudgetKind:
        one, other = before.budgets.get(kind), after.budgets.get(kind)
        if one != other:
            yield replace(smallest, budgets=nothing | {kind: _beside(one, other)})
    if before.destinations != after.destinations:
        for name in _accounts(*before.destinations, *after.destinations):
            yield replace(smallest, destinations=(name,))


def _accounts(*limits: tuple[str, ...]) -> list[str]:
    """Return the accounts, and patterns of accounts, that limits tell apart."""
    texts = {text for each in limits for text in each}
    names = name_classes([path_set((text,)) for text in sorted(texts)])
    return sorted({"*", *texts, *(name.decode() for name, _ in names.members)})


def _beside(one: int | None, other: int | None) -> int:
    """Return what is just above the smaller of two bounds of which at most one is missing."""
    return min(bound for bound in (one, other) if bound is not None) + 1


def _compared_exactly(before: set[str], after: set[str]) -> bool:
    """Tell whether no request lies between: `covers` is exact, or each pattern of one is in the other literally."""
    return before == after or not any(
        covered(one, text) and text not in one and not _plain(text) for one, other in ((before, after), (after, before)) for text in other
    )


def _plain(text: str) -> bool:
    """Tell whether a pattern has no name for which `covers` may say no where yes is true."""
    return all(name.count("*") + name.count("?") <= 1 or name == "**" for name in text.split("/"))


def _essence(decision: Decision) -> tuple[Effect, Ask | None]:
    return decision.effect, decision.ask


def _direction(before: Decision, after: Decision) -> Direction:
    if before.effect is after.effect:
        return Direction.ASKS
    return Direction.WIDER if _ORDER[after.effect] > _ORDER[before.effect] else Direction.NARROWER


# -- what policies give as facts --------------------------------------------------------------------------------------


def _compare_labels(before: CompiledPolicy, after: CompiledPolicy) -> tuple[tuple[LabelDifference, ...], bool]:
    classes = path_classes([rule.paths for policy in (before, after) for rule in policy.labels])
    found: dict[object, LabelDifference] = {}
    for path, _ in classes.members:
        of_content = LabelDifference(path, before.label_of(path), after.label_of(path))
        of_names = LabelDifference(path, before.label_of_names(path), after.label_of_names(path), names=True)
        for each in (of_content, of_names):
            if each.before != each.after:
                found.setdefault((each.before, each.after, each.names), each)
    return tuple(found.values()), classes.complete


def _compare_roles(before: CompiledPolicy, after: CompiledPolicy) -> Iterator[RoleDifference]:
    for role in sorted({*before.roles, *after.roles}):
        old, new = before.roles.get(role, frozenset()), after.roles.get(role, frozenset())
        if old != new:
            yield RoleDifference(role, tuple(sorted(new - old)), tuple(sorted(old - new)))


def _compare_checks(before: CompiledPolicy, after: CompiledPolicy) -> Iterator[CheckDifference]:
    old, new = ({check.id: check for check in policy.checks} for policy in (before, after))
    for name in sorted({*old, *new}):
        if _what_runs(old.get(name)) != _what_runs(new.get(name)):
            yield CheckDifference(old.get(name), new.get(name))


def _compare_rules(before: CompiledPolicy, after: CompiledPolicy) -> Iterator[RuleDifference]:
    old, new = _by_id(before), _by_id(after)
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            yield RuleDifference(name, "added" if name in new else "removed")
        elif what := tuple(_rewritten(old[name], new[name])):
            yield RuleDifference(name, "changed", what)


def _by_id(policy: CompiledPolicy) -> dict[str, Grant | Guard]:
    return {rule.id: rule for rule in policy.grants} | {rule.id: rule for rule in policy.guards}


def _rewritten(old: Grant | Guard, new: Grant | Guard) -> Iterator[str]:
    """Yield in what a rule is written otherwise; patterns one by one."""
    if type(old) is not type(new):
        yield "kind"
    one, other = ({pattern.text for pattern in rule.paths.patterns} for rule in (old, new))
    yield from (f"paths -{text}" for text in sorted(one - other))
    yield from (f"paths +{text}" for text in sorted(other - one))
    for name in ("who", "actions", "when", "limits", "ask", "reason"):
        if _written(old, name) != _written(new, name):
            yield name


def _written(rule: Grant | Guard, name: str) -> object:
    if name == "who":
        names = (rule.who.principals, rule.who.on_behalf_of)
        return rule.who.kinds, rule.who.roles, [None if each is None else sorted(text.text for text in each.patterns) for each in names]
    value = getattr(rule, name, None)
    return frozenset(value) if name == "when" and value is not None else value


def _what_runs(check: Check | None) -> object:
    if check is None:
        return None
    return check.run, tuple(sorted(pattern.text for pattern in check.paths.patterns)), check.timeout, check.required
