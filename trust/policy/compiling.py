"""A policy document to a compiled policy, or to the list of everything that is wrong with it.

1. Nothing is guessed: what does not compile is not adopted, and every finding has file, line and column.
2. Meaning is checked after shape: ids are unique, roles exist, patterns are normalised, quantities have units, conditions stand
   where they mean something.
3. The same text gives the same policy and the same hash; the order of its rules decides nothing.
4. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from trust.errors import PatternInvalid, PolicyInvalid, QuantityInvalid
from trust.labels import DEFAULT, parse_label
from trust.model import LEASABLE, Action, Ask, BudgetKind, Position, PrincipalKind
from trust.policy.checking import check_shape, suggest
from trust.policy.patterns import PathSet, parse_pattern, path_set
from trust.policy.quantities import parse_duration, parse_size
from trust.policy.reading import Diagnostic, Located, Place, read_document
from trust.policy.rules import (
    CHANGE_SUBJECTS,
    OWNER,
    Check,
    CompiledPolicy,
    Condition,
    Grant,
    Guard,
    LabelRule,
    Limits,
    Operator,
    RuleOfTwo,
    Who,
)

_Value = TypeVar("_Value")
_Rule = TypeVar("_Rule", Grant, Guard)
_RULE_OF_TWO_ASK = Ask(OWNER, 24 * 3600)
"""What the Rule of Two asks where the policy does not say."""


def compile_policy(text: str, source: str) -> CompiledPolicy:
    """Return the compiled policy. Raises `PolicyInvalid` with every diagnostic."""
    policy, diagnostics = _compile(text, source)
    if policy is None:
        raise PolicyInvalid(source, str(diagnostics[0]), tuple(diagnostics))
    return policy


def check_policy(text: str, source: str) -> tuple[Diagnostic, ...]:
    """Return every finding about a policy document; none means that it compiles."""
    return tuple(_compile(text, source)[1])


def empty_policy(source: str) -> CompiledPolicy:
    """Return the policy that grants nothing: what holds before one was adopted."""
    return _assemble(Located(source), "", {}, [], [], [], [], RuleOfTwo(Position(source, 0, 0), _RULE_OF_TWO_ASK))


def _compile(text: str, source: str) -> tuple[CompiledPolicy | None, list[Diagnostic]]:
    located = read_document(text, source)
    if not located.diagnostics:
        located.diagnostics.extend(check_shape(located))
    if located.diagnostics:
        return None, located.diagnostics
    builder = _Builder(located)
    grants = [builder.grant(place, rule) for place, rule in builder.items("grants")]
    guards = [builder.guard(place, rule) for place, rule in builder.items("guards")]
    checks = [builder.check(place, rule) for place, rule in builder.items("checks")]
    labels = [builder.label(place, rule) for place, rule in builder.items("labels")]
    rule_of_two = builder.rule_of_two(located.value.get("rule_of_two", {"effect": "gate"}))
    builder.refuse_repeated_ids()
    if located.diagnostics:
        return None, sorted(located.diagnostics, key=lambda each: (each.position.line, each.position.column))
    roles = {role: frozenset(members) for role, members in located.value["roles"].items()}
    return _assemble(located, text, roles, grants, guards, checks, labels, rule_of_two), []


def _assemble(
    located: Located,
    text: str,
    roles: Mapping[str, frozenset[str]],
    grants: list[Grant],
    guards: list[Guard],
    checks: list[Check],
    labels: list[LabelRule],
    rule_of_two: RuleOfTwo,
) -> CompiledPolicy:
    return CompiledPolicy(
        source=located.source,
        hash=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        roles=roles,
        grants=tuple(sorted(grants, key=lambda rule: rule.id)),
        guards=tuple(sorted(guards, key=lambda rule: rule.id)),
        checks=tuple(sorted(checks, key=lambda check: check.id)),
        labels=tuple(labels),
        labelled=path_set(tuple(pattern.text for rule in labels for pattern in rule.paths.patterns)),
        rule_of_two=rule_of_two,
        grants_of=_by_action(grants),
        refusals_of=_by_action([guard for guard in guards if guard.ask is None]),
        gates_of=_by_action([guard for guard in guards if guard.ask is not None]),
        grants_at=located.position(("grants",)),
        roles_at=located.position(("roles",)),
    )


def _by_action(rules: Iterable[_Rule]) -> dict[Action, tuple[_Rule, ...]]:
    ordered = sorted(rules, key=lambda rule: rule.id)
    return {action: tuple(rule for rule in ordered if action in rule.actions) for action in Action}


class _Builder:
    """Turns the checked shape into rules and notes what has no meaning."""

    def __init__(self, located: Located) -> None:
        self._located = located
        self._roles = list(located.value["roles"])

    def items(self, section: str) -> list[tuple[Place, dict[str, Any]]]:
        """Return the entries of a section with their places."""
        return [((section, index), entry) for index, entry in enumerate(self._located.value.get(section, []))]

    def grant(self, place: Place, rule: dict[str, Any]) -> Grant:
        """Return one grant."""
        actions = _actions(rule)
        return Grant(
            id=rule["id"],
            position=self._located.position(place),
            who=self._who((*place, "who"), rule.get("who", {})),
            actions=actions,
            paths=self._patterns((*place, "paths"), rule.get("paths", ["**"])),
            when=self._when((*place, "when"), rule.get("when", {}), actions),
            limits=self._limits((*place, "limits"), rule.get("limits", {}), actions),
        )

    def guard(self, place: Place, rule: dict[str, Any]) -> Guard:
        """Return one guard."""
        actions = _actions(rule)
        return Guard(
            id=rule["id"],
            position=self._located.position(place),
            who=self._who((*place, "who"), rule.get("who", {})),
            actions=actions,
            paths=self._patterns((*place, "paths"), rule.get("paths", ["**"])),
            when=self._when((*place, "when"), rule.get("when", {}), actions),
            ask=self._ask(place, rule) if rule["effect"] == "gate" else None,
            reason=rule["reason"],
        )

    def check(self, place: Place, rule: dict[str, Any]) -> Check:
        """Return one check."""
        return Check(
            id=rule["id"],
            position=self._located.position(place),
            run=tuple(rule["run"]),
            paths=self._patterns((*place, "paths"), rule.get("paths", ["**"])),
            timeout=self._quantity((*place, "timeout"), parse_duration, rule.get("timeout", "300s")),
            required=rule.get("required", True),
        )

    def label(self, place: Place, rule: dict[str, Any]) -> LabelRule:
        """Return one label rule."""
        label = parse_label(rule.get("origin"), rule.get("sensitivity"), DEFAULT)
        return LabelRule(self._located.position(place), self._patterns((*place, "paths"), rule["paths"]), label, rule.get("names", False))

    def rule_of_two(self, rule: dict[str, Any]) -> RuleOfTwo:
        """Return what happens when all three of the Rule of Two come together."""
        place: Place = ("rule_of_two",)
        position = self._located.position(place)
        if rule["effect"] != "gate":
            return RuleOfTwo(position, None, rule["effect"] == "refuse")
        return RuleOfTwo(position, self._ask(place, rule) if "required_role" in rule else _RULE_OF_TWO_ASK)

    def refuse_repeated_ids(self) -> None:
        """Note ids that two rules or two checks share."""
        self._refuse_repeated([*self.items("grants"), *self.items("guards")])
        self._refuse_repeated(self.items("checks"))

    def _refuse_repeated(self, entries: list[tuple[Place, dict[str, Any]]]) -> None:
        first: dict[str, Place] = {}
        for place, rule in entries:
            earlier = first.setdefault(rule["id"], place)
            if earlier is not place:
                self._note(
                    "repeated-id",
                    (*place, "id"),
                    f"the id '{rule['id']}' is used twice",
                    f"first at {self._located.position((*earlier, 'id'))}",
                )

    def _who(self, place: Place, who: dict[str, Any]) -> Who:
        for index, role in enumerate(who.get("roles", [])):
            self._require_role((*place, "roles", index), role)
        return Who(
            kinds=frozenset(PrincipalKind(kind) for kind in who.get("kinds", [])),
            principals=self._names((*place, "principals"), who.get("principals", [])),
            roles=frozenset(who.get("roles", [])),
            on_behalf_of=self._names((*place, "on_behalf_of"), who.get("on_behalf_of", [])),
        )

    def _require_role(self, place: Place, role: str) -> None:
        if role not in self._roles:
            self._note("unknown-role", place, f"there is no role '{role}'", suggest(role, self._roles))

    def _names(self, place: Place, texts: list[str]) -> PathSet | None:
        for index, text in enumerate(texts):
            if "/" in text or text == "**":
                self._note("not-a-name", (*place, index), f"'{text}' is a path, not the name of a principal")
        return None if not texts or "*" in texts else self._patterns(place, texts)

    def _patterns(self, place: Place, texts: list[str]) -> PathSet:
        good = [text for index, text in enumerate(texts) if self._is_pattern((*place, index), text)]
        return path_set(tuple(good))

    def _is_pattern(self, place: Place, text: str) -> bool:
        try:
            parse_pattern(text)
        except PatternInvalid as error:
            self._note("bad-pattern", place, f"'{text}' is not a pattern", error.why)
            return False
        return True

    def _when(self, place: Place, when: dict[str, Any], actions: frozenset[Action]) -> tuple[Condition, ...]:
        for subject in when:
            self._require_subject((*place, subject), subject, actions)
        conditions: list[Condition] = []
        for subject, wanted in when.items():
            if isinstance(wanted, list):
                conditions.append(Condition(subject, Operator.IN, words=frozenset(wanted)))
                continue
            for operator, value in wanted.items():
                number = self._quantity((*place, subject, operator), parse_size, value)
                conditions.append(Condition(subject, Operator(operator), number))
        return tuple(conditions)

    def _require_subject(self, place: Place, subject: str, actions: frozenset[Action]) -> None:
        """Note a condition that could never hold, or always, for one of the actions."""
        wanted, about = _LABELLED, "labels look at what is read, written, merged or sent"
        if subject in CHANGE_SUBJECTS:
            wanted, about = frozenset({Action.MERGE}), "conditions look at a change, and only merge has one"
        elif subject == "destination":
            wanted, about = frozenset({Action.EGRESS}), "only egress has a destination"
        if actions - wanted:
            self._note("misplaced-condition", place, about, "move the other actions to a rule of their own")

    def _limits(self, place: Place, limits: dict[str, Any], actions: frozenset[Action]) -> Limits:
        ttl = self._quantity((*place, "ttl"), parse_duration, limits["ttl"]) if "ttl" in limits else None
        budgets = {
            BudgetKind(kind): self._quantity((*place, "budgets", kind), parse_size, value)
            for kind, value in limits.get("budgets", {}).items()
        }
        if "destinations" not in limits:
            return Limits(ttl, budgets)
        if Action.EGRESS not in actions:
            self._note("misplaced-limit", (*place, "destinations"), "only egress has a destination", "move it to the grant of egress")
        accounts = self._patterns((*place, "destinations"), limits["destinations"])
        return Limits(ttl, budgets, (tuple(pattern.text for pattern in accounts.patterns),))

    def _ask(self, place: Place, rule: dict[str, Any]) -> Ask:
        self._require_role((*place, "required_role"), rule["required_role"])
        deadline = self._quantity((*place, "deadline"), parse_duration, rule["deadline"])
        if deadline == 0:
            self._note("no-time", (*place, "deadline"), "nobody can answer in no time")
        use_within = self._quantity((*place, "use_within"), parse_duration, rule.get("use_within", "24h"))
        if use_within == 0:
            self._note("no-time", (*place, "use_within"), "nobody can use an approval in no time")
        return Ask(rule["required_role"], deadline, rule["fallback"], rule.get("approvals", 1), rule.get("independent", False), use_within)

    def _quantity(self, place: Place, parse: Callable[[_Value], int], value: _Value) -> int:
        try:
            return parse(value)
        except QuantityInvalid as error:
            self._note("bad-quantity", place, f"'{value}' cannot be read", error.why)
            return 1

    def _note(self, code: str, place: Place, message: str, hint: str = "") -> None:
        self._located.note(code, self._located.position(place), message, hint)


_LABELLED = LEASABLE | {Action.MERGE, Action.START}


def _actions(rule: dict[str, Any]) -> frozenset[Action]:
    return frozenset(Action(action) for action in rule["actions"])
