"""Every situation that policies can tell apart, as a finite space.

1. A rule is a conjunction of conditions on independent facts. For each fact there is one representative of every class that the constants
   of the given policies make (names, paths, roles, the numbers beside each bound), and for each combination what applies. Any facts about
   the action let apply exactly what some combination does.
2. Combinations that apply the same rules are one `Cell`, with the first (plainest) facts that led to it.
3. What every policy does alike is left out: a lease, a budget or a protected branch in the way, and what the owner may do in any case. An
   approved gate is left out as well: what it allows follows from who is asked.
4. A change of several paths says nothing that its single paths do not say together: a refusal of one refuses, a question about one asks,
   else each must be granted. The space has changes of one path and of none.
5. Exact while `complete`; beyond the limits a part is looked at, and `complete` is false.
6. Pure and deterministic.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trust.labels import DEFAULT, Label, Origin, Sensitivity
from trust.model import LEASABLE, Action, ChangeFacts, Facts, LeaseState, PrincipalKind, PrincipalName, Scope
from trust.policy.classes import name_classes, path_classes
from trust.policy.decide import OWNER_ACTIONS, POLICY_PATH
from trust.policy.patterns import PathSet, path_set
from trust.policy.rules import CHANGE_SUBJECTS, OWNER, CompiledPolicy, Condition, Grant, Guard, breaks_rule

MOST_CELLS = 300_000
"""How many combinations of an action are looked at."""
MOST_ROLES = 8
"""Up to how many roles every set of them is looked at; beyond, each alone, each pair and all together."""
PATH_ACTIONS = frozenset({Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.MERGE})
_STEERING = path_set((POLICY_PATH.decode(), POLICY_PATH.rpartition(b"/")[0].decode()))
_KINDS = (PrincipalKind.AGENT, PrincipalKind.HUMAN, PrincipalKind.SERVICE, PrincipalKind.NODE)
_LABELS = tuple(
    Label(origin, sensitivity)
    for origin in (Origin.INTERNAL, Origin.EXTERNAL, Origin.OWNER)
    for sensitivity in (Sensitivity.INTERNAL, Sensitivity.SENSITIVE, Sensitivity.PUBLIC)
)
"""All labels, the everyday one first."""
_LEASE = Scope(("**",), LEASABLE, 0, 1 << 60, destinations=("declared",))
_TEMPLATE = Facts(
    now=1,
    principal=PrincipalName("someone"),
    kind=PrincipalKind.AGENT,
    roles=frozenset(),
    on_behalf_of=PrincipalName(""),
    action=Action.READ,
    path=None,
    lease=None,
    lease_state=None,
    left={},
    needs={},
    protected=False,
    change=None,
    request=None,
    gate=None,
    disabled=False,
    taint=DEFAULT,
    label=DEFAULT,
    outward=False,
    destination="",
)

Rule = Grant | Guard
Fill = Mapping[str, Any]
"""Facts by name that a representative stands for."""


@dataclass(frozen=True, slots=True)
class Column:
    """A rule as one action looks at it. With `lives`, a grant that a requested lease would live on, which asks only who it is for."""

    rule: Rule
    lives: bool = False

    @property
    def when(self) -> tuple[Condition, ...]:
        """Return the conditions that count."""
        return () if self.lives else self.rule.when


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination: the facts of its representative, and what applies to it as bits over `Space.columns`."""

    facts: Facts
    applying: int


@dataclass(frozen=True, slots=True)
class Space:
    """The cells of one action.

    `applying` has, beyond the bits of `columns`, one each for: the act breaks the Rule of Two; the change touches the policy; the one
    who acts has the role of the owner.
    """

    action: Action
    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]
    complete: bool

    @property
    def broken(self) -> int:
        """Return the bit of cells that break the Rule of Two."""
        return _BROKEN << len(self.columns)

    @property
    def steering(self) -> int:
        """Return the bit of changes that touch the policy."""
        return _STEERS << len(self.columns)

    @property
    def owning(self) -> int:
        """Return the bit of those with the role of the owner."""
        return _OWNS << len(self.columns)


_BROKEN, _STEERS, _OWNS, _BEYOND = 1, 2, 4, 8


def make_space(policies: Sequence[CompiledPolicy], action: Action) -> Space:
    """Return the cells of an action that the policies tell apart."""
    columns = tuple(column for policy in policies for column in _columns_of(policy, action))
    axes = _Axes(columns, action)
    combined = _combine([axes.people(), axes.conditions(), axes.paths()])
    cells = tuple(Cell(make_facts(action, fill), mask) for mask, fill in combined.members)
    return Space(action, columns, cells, combined.complete)


def make_facts(action: Action, fill: Fill) -> Facts:
    """Return the facts of a representative: nothing but the policy is in its way."""
    values = dict(fill)
    change = {name: values.pop(name) for name in (*CHANGE_SUBJECTS, "paths") if name in values}
    if action in LEASABLE:
        values |= {"lease": _LEASE, "lease_state": LeaseState.LIVE}
    if action is Action.EGRESS:
        values.setdefault("destination", "undeclared")
    if action is Action.MERGE:
        values |= {"change": ChangeFacts(**change), "protected": True}
    return replace(_TEMPLATE, action=action, **values)


def _columns_of(policy: CompiledPolicy, action: Action) -> Iterator[Column]:
    """Yield the rules that bear on an action; what a run is started with is weighed by the grants it would live on."""
    rules: tuple[Rule, ...] = (*policy.refusals_of[action], *policy.gates_of[action], *policy.grants_of[action])
    yield from map(Column, rules)
    if action is Action.START:
        yield from (Column(grant, lives=True) for grant in policy.grants if grant.actions & LEASABLE)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The representatives of a group of facts, each with what they let apply."""

    members: tuple[tuple[int, Fill], ...]
    complete: bool = True


def _combine(axes: Sequence[_Axis]) -> _Axis:
    """Return every combination of the groups, those that let the same apply only once."""
    members: tuple[tuple[int, Fill], ...] = ((-1, {}),)
    complete = True
    for axis in axes:
        stride = 1 + len(members) * len(axis.members) // MOST_CELLS
        found: dict[int, Fill] = {}
        for (mask, fill), (other, more) in itertools.islice(itertools.product(members, axis.members), None, None, stride):
            if mask & other not in found:
                found[mask & other] = {**fill, **more}
        members, complete = tuple(found.items()), complete and axis.complete and stride == 1
    return _Axis(members, complete)


class _Axes:
    """The facts that the rules of one action look at, one group after the other."""

    def __init__(self, columns: tuple[Column, ...], action: Action) -> None:
        self._columns = columns
        self._whos = [each.rule.who for each in columns]
        self._action = action
        self._beyond = (_BEYOND - 1) << len(columns)

    def people(self) -> _Axis:
        """Return those who could act: kinds, names, roles, and for whom."""
        kinds = tuple((self._gather([not who.kinds or kind in who.kinds for who in self._whos]), {"kind": kind}) for kind in _KINDS)
        return _combine([_Axis(kinds), self._names("principal"), self._names("on_behalf_of"), self._roles()])

    def paths(self) -> _Axis:
        """Return the paths, and for a change also none."""
        if self._action not in PATH_ACTIONS:
            return _Axis(((-1, {}),))
        sets = {_key(each.rule.paths): each.rule.paths for each in self._columns}
        if self._action is Action.MERGE:
            sets[_key(_STEERING)] = _STEERING
        classes = path_classes(tuple(sets.values()))
        members = [self._path(dict(zip(sets, _truths(bits), strict=False)), path) for path, bits in classes.members]
        if self._action is Action.MERGE:
            mask = self._mask(lambda each: isinstance(each.rule, Grant) or each.rule.paths.everything)
            members.append((mask & ~self._flag(_STEERS), {"paths": ()}))
        return _Axis(tuple(members), classes.complete)

    def conditions(self) -> _Axis:
        """Return the labels, destinations and sizes of changes."""
        axes = [self._labels()]
        if self._action is Action.EGRESS:
            axes.append(_Axis(tuple(self._judge({"destination": each}) for each in ("undeclared", "declared"))))
        if self._action is Action.MERGE:
            axes += [self._sizes(subject) for subject in sorted(CHANGE_SUBJECTS)]
        return _combine(axes)

    def _names(self, fact: str) -> _Axis:
        """Return names; those for whom somebody acts can be nobody."""
        wanted = [who.on_behalf_of if fact == "on_behalf_of" else who.principals for who in self._whos]
        sets = {_key(names): names for names in wanted if names is not None}
        classes = name_classes(tuple(sets.values()))
        nobody = [(b"", 0)] if fact == "on_behalf_of" else []
        members = []
        for name, bits in (*classes.members, *nobody):
            matching = dict(zip(sets, _truths(bits), strict=False))
            fits = [names is None or matching[_key(names)] for names in wanted]
            members.append((self._gather(fits), {fact: PrincipalName(name.decode())}))
        return _Axis(tuple(members), classes.complete)

    def _roles(self) -> _Axis:
        roles = sorted(frozenset[str]().union({OWNER}, *(who.roles for who in self._whos)))
        if self._action in OWNER_ACTIONS and self._action not in LEASABLE:
            roles.remove(OWNER)  # the owner may in any case
        sizes = range(len(roles) + 1) if len(roles) <= MOST_ROLES else (0, 1, 2, len(roles))
        members = []
        for chosen in (frozenset(each) for size in sizes for each in itertools.combinations(roles, size)):
            mask = self._gather([not who.roles or not chosen.isdisjoint(who.roles) for who in self._whos])
            members.append((mask if OWNER in chosen else mask & ~self._flag(_OWNS), {"roles": chosen}))
        return _Axis(tuple(members), len(roles) <= MOST_ROLES)

    def _labels(self) -> _Axis:
        found: dict[int, Fill] = {}
        for outward, taint, label in itertools.product((False, True), _LABELS, _LABELS):
            mask, fill = self._judge({"outward": outward, "taint": taint, "label": label})
            broken = breaks_rule(make_facts(self._action, fill))
            found.setdefault(mask if broken else mask & ~self._flag(_BROKEN), fill)
        return _Axis(tuple(found.items()))

    def _sizes(self, subject: str) -> _Axis:
        if subject == "checks":
            return _Axis(tuple(self._judge({subject: each}) for each in ("none", "passed", "failed", "missing")))
        bounds = {condition.number for each in self._columns for condition in each.when if condition.subject == subject}
        values = {0}.union(*({bound - 1, bound, bound + 1} for bound in bounds))
        return _Axis(tuple(self._judge({subject: value}) for value in sorted(values) if value >= 0))

    def _judge(self, fill: Fill) -> tuple[int, Fill]:
        """Return what facts let apply, as far as the conditions that look at them go."""
        facts = make_facts(self._action, fill)
        subjects = {"origin", "sensitivity", "rule_of_two"} if "taint" in fill else set(fill)
        return self._mask(lambda column: all(each.holds(facts) for each in column.when if each.subject in subjects)), fill

    def _path(self, matching: Mapping[tuple[str, ...], bool], path: bytes) -> tuple[int, Fill]:
        mask = self._mask(lambda each: matching[_key(each.rule.paths)])
        if self._action is not Action.MERGE:
            return mask, {"path": path}
        return mask if matching[_key(_STEERING)] else mask & ~self._flag(_STEERS), {"paths": (path,)}

    def _mask(self, applies: Callable[[Column], bool]) -> int:
        """Return the rules for which a condition holds, as bits; what is no rule passes."""
        return self._gather([applies(each) for each in self._columns])

    def _gather(self, fits: Sequence[bool]) -> int:
        return self._beyond | sum(1 << index for index, each in enumerate(fits) if each)

    def _flag(self, flag: int) -> int:
        return flag << len(self._columns)


def _key(names: PathSet | None) -> tuple[str, ...]:
    return () if names is None else tuple(pattern.text for pattern in names.patterns)


def _truths(bits: int) -> Iterator[bool]:
    while True:
        yield bool(bits & 1)
        bits >>= 1
