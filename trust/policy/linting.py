"""What a policy that compiles says in vain, or hardly means: each finding with a code that stays, a place and a way on.

1. An error is what cannot have been meant: a rule that never applies because it contradicts itself, questions that contradict one another,
   a question that too few people could answer. A document with one is not adopted. A warning is what has no effect, or a risky one.
2. Whether a rule ever decides is found by asking about every cell (`trust.policy.abstraction`), not by comparing texts.
3. What only an installation knows (its principals, their standing roles) is checked where it is given.
4. Pure and deterministic; findings come ordered by position.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from trust.labels import DEFAULT, Label, join_all
from trust.model import LEASABLE, Action, Ask, Position, PrincipalKind
from trust.policy.abstraction import Space, make_space
from trust.policy.compiling import check_policy, compile_policy
from trust.policy.covering import covers
from trust.policy.decide import OWNER_ACTIONS
from trust.policy.outcomes import make_reader
from trust.policy.patterns import PathSet
from trust.policy.reading import Diagnostic, Severity
from trust.policy.rules import OWNER, WORD_SUBJECTS, CompiledPolicy, Condition, Grant, Guard, LabelRule, Operator

LONGEST_NAME = 255
"""The most bytes of a name in a tree."""
WORK = (Action.START, Action.LIST, Action.READ, Action.WRITE, Action.PROPOSE, Action.MERGE)
"""The actions without which no work gets from a run to the protected branch."""

_LASTING = frozenset({Action.WRITE, Action.DELETE, Action.EGRESS})
Rule = Grant | Guard


@dataclass(frozen=True, slots=True)
class Known:
    """What an installation knows: its principals by name, and the standing roles of each."""

    principals: Mapping[str, frozenset[str]] = field(default_factory=dict)


def lint_policy(policy: CompiledPolicy, known: Known | None = None) -> tuple[Diagnostic, ...]:
    """Return everything that a compiled policy says in vain."""
    found: list[Diagnostic] = []
    impossible: set[str] = set()
    for rule in _rules(policy):
        contradictions = list(_contradictions(rule))
        found += contradictions
        impossible |= {rule.id} if contradictions else set()
    for look in _LOOKS:
        found += look(policy)
    found += _vain_rules(policy, impossible)
    found += _too_few_people(policy, known)
    if known is not None:
        found += _strangers(policy, known)
    return tuple(sorted(dict.fromkeys(found), key=lambda each: (each.position.line, each.position.column, each.code, each.message)))


def examine_policy(text: str, source: str, known: Known | None = None) -> tuple[Diagnostic, ...]:
    """Return every finding about a document: what keeps it from compiling, else what it says in vain."""
    return check_policy(text, source) or lint_policy(compile_policy(text, source), known)


def _rules(policy: CompiledPolicy) -> tuple[Rule, ...]:
    return (*policy.grants, *policy.guards)


def _error(code: str, position: Position, message: str, hint: str) -> Diagnostic:
    return Diagnostic(position, message, hint, code, Severity.ERROR)


def _warning(code: str, position: Position, message: str, hint: str) -> Diagnostic:
    return Diagnostic(position, message, hint, code, Severity.WARNING)


# -- a rule by itself -------------------------------------------------------------------------------------------------


def _contradictions(rule: Rule) -> Iterator[Diagnostic]:
    """Yield what keeps a rule from ever applying, whatever the other rules are."""
    by_subject: dict[str, list[Condition]] = {}
    for condition in rule.when:
        by_subject.setdefault(condition.subject, []).append(condition)
    for subject, conditions in by_subject.items():
        if subject not in WORD_SUBJECTS and subject != "checks" and not _satisfiable(conditions):
            said = " and ".join(sorted(map(_in_short, conditions)))
            yield _error("impossible-condition", rule.position, f"'{rule.id}' never applies: no {subject} is {said}", "correct the bounds")
    words = {condition.subject: condition.words for condition in rule.when if condition.operator is Operator.IN}
    unbroken = "external" not in words.get("origin", {"external"}) or "sensitive" not in words.get("sensitivity", {"sensitive"})
    if words.get("rule_of_two") == frozenset({"broken"}) and unbroken:
        reason = f"'{rule.id}' never applies: only external and sensitive together break the Rule of Two"
        yield _error("impossible-condition", rule.position, reason, "leave the origin and the sensitivity out")


def _satisfiable(conditions: Iterable[Condition]) -> bool:
    low, high = 0, 1 << 70
    for condition in conditions:
        if condition.operator in (Operator.AT_LEAST, Operator.EQUALS):
            low = max(low, condition.number)
        if condition.operator in (Operator.AT_MOST, Operator.EQUALS):
            high = min(high, condition.number)
    return low <= high


def _in_short(condition: Condition) -> str:
    return f"{condition.operator.value} {condition.number}"


def _idle_conditions(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield conditions that always hold."""
    everything = {**WORD_SUBJECTS, "checks": frozenset({"none", "passed", "failed", "missing"})}
    for rule in _rules(policy):
        for condition in rule.when:
            at_least_nothing = condition.operator is Operator.AT_LEAST and condition.number == 0
            if at_least_nothing or (condition.operator is Operator.IN and condition.words == everything[condition.subject]):
                message = f"the condition on {condition.subject} in '{rule.id}' always holds"
                yield _warning("idle-condition", rule.position, message, "leave it out, or narrow it")


def _paths_of_nothing(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield patterns that no path in a tree has."""
    for position, what, paths in _path_sets(policy):
        for pattern in paths.patterns:
            names = pattern.text.split("/")
            if any(name.rstrip(" .").lower() == ".git" for name in names):
                message = f"'{pattern.text}' in {what} matches nothing: a tree has no .git"
                yield _warning("unreachable-path", position, message, "leave it out")
            elif any(len(name.replace("*", "").encode()) > LONGEST_NAME for name in names):
                message = f"'{pattern.text[:40]}...' in {what} matches nothing: a name has at most {LONGEST_NAME} bytes"
                yield _warning("unreachable-path", position, message, "shorten the name")


def _patterns_twice(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield patterns that another pattern of the same list covers."""
    for position, what, paths in _path_sets(policy):
        texts = [pattern.text for pattern in paths.patterns]
        for index, text in enumerate(texts):
            wider = next(
                (other for at, other in enumerate(texts) if at != index and covers(other, text) and (at < index or other != text)), None
            )
            if wider is not None and not (covers(text, wider) and texts.index(wider) > index):
                yield _warning("redundant-pattern", position, f"'{text}' in {what} is covered by '{wider}'", "leave it out")


def _path_sets(policy: CompiledPolicy) -> Iterator[tuple[Position, str, PathSet]]:
    for rule in (*_rules(policy), *policy.checks):
        yield rule.position, f"'{rule.id}'", rule.paths
    for label in policy.labels:
        yield label.position, "a label", label.paths


def _limits_of_nothing(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield limits that no lease has, and grants whose leases have no end."""
    for grant in policy.grants:
        limited = grant.limits.ttl is not None or grant.limits.budgets
        if limited and not grant.actions & LEASABLE:
            yield _warning(
                "idle-limits", grant.position, f"'{grant.id}' limits leases and gives nothing that a lease carries", "move the limits"
            )
        for_agents = PrincipalKind.AGENT in (grant.who.kinds or set(PrincipalKind))
        if for_agents and grant.actions & _LASTING and grant.limits.ttl is None and not _bounded_elsewhere(policy, grant):
            message = f"'{grant.id}' gives agents leases for as long as they ask"
            yield _warning("endless-lease", grant.position, message, "add limits: {ttl: 24h}")


def _bounded_elsewhere(policy: CompiledPolicy, grant: Grant) -> bool:
    """Tell whether every lease on a grant lives on another one too, which bounds its life."""
    return any(
        other.limits.ttl is not None
        and other.actions >= grant.actions
        and all(any(covers(wide.text, each.text) for wide in other.paths.patterns) for each in grant.paths.patterns)
        and (not other.who.kinds or other.who.kinds >= (grant.who.kinds or frozenset(PrincipalKind)))
        and not (other.who.roles or other.who.principals or other.who.on_behalf_of)
        for other in policy.grants
        if other is not grant
    )


# -- rules beside one another -----------------------------------------------------------------------------------------


def _contradicting_questions(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield pairs of questions that are always asked together and want different answers."""
    asking = [guard for guard in policy.guards if guard.ask is not None]
    for one, other in itertools.combinations(sorted(asking, key=lambda guard: (guard.position.line, guard.id)), 2):
        if _reach(one) == _reach(other) and one.ask is not None and other.ask is not None:
            differing = _differing(one.ask, other.ask)
            if differing:
                message = f"'{other.id}' asks exactly when '{one.id}' does and names another {differing}"
                yield _error("contradicting-questions", other.position, message, f"keep one of the two; the first is at {one.position}")


def _differing(one: Ask, other: Ask) -> str:
    if one.required_role != other.required_role:
        return "role"
    return "fallback" if one.fallback != other.fallback else ""


def _reach(rule: Rule) -> tuple[object, ...]:
    who = rule.who
    names = tuple(
        None if each is None else frozenset(pattern.text for pattern in each.patterns) for each in (who.principals, who.on_behalf_of)
    )
    paths = frozenset(pattern.text for pattern in rule.paths.patterns)
    return who.kinds, who.roles, names, rule.actions, paths, frozenset(rule.when)


def _vain_rules(policy: CompiledPolicy, impossible: Collection[str]) -> Iterator[Diagnostic]:
    """Yield rules that decide nothing, as every cell of every action shows: refused before, or said by others as well."""
    useful: set[str] = set(impossible)
    reached: set[str] = set()
    complete = True
    for action in Action:
        space = make_space([policy], action)
        complete &= space.complete
        use, reach = _use(policy, space)
        useful |= use
        reached |= reach
    if not complete:
        return
    useful |= {grant.id for grant in policy.grants if grant.limits.ttl is not None or grant.limits.budgets or grant.limits.destinations}
    for rule in _rules(policy):
        if rule.id not in useful:
            yield _vain(policy, rule, rule.id in reached)


def _use(policy: CompiledPolicy, space: Space) -> tuple[set[str], set[str]]:
    """Return the rules without which some cell would come out otherwise, and those that are at least looked at in some cell."""
    reader = replace(make_reader(policy, space), enough=0)
    useful: set[str] = set()
    reached: set[str] = set()
    for cell in space.cells:
        outcome = reader.read(cell.applying)
        for index, column in enumerate(space.columns):
            bit = 1 << index
            if not cell.applying & bit:
                continue
            if column.lives:
                useful.add(column.rule.id) if _only_one(space, cell.applying, index) else None
                continue
            if reader.read(cell.applying & ~bit) != outcome:
                useful.add(column.rule.id)
            if bit & reader.refusing or not cell.applying & (reader.refusing | reader.refuses_three):
                reached.add(column.rule.id)
    return useful, reached


def _only_one(space: Space, applying: int, index: int) -> bool:
    """Tell whether a grant alone gives something to the lease that is requested in a cell."""
    rule = space.columns[index].rule
    others = [column.rule for at, column in enumerate(space.columns) if column.lives and at != index and applying >> at & 1]
    return any(
        not any(action in other.actions and covers(wide.text, each.text) for other in others for wide in other.paths.patterns)
        for action in rule.actions & LEASABLE
        for each in rule.paths.patterns
    )


def _vain(policy: CompiledPolicy, rule: Rule, reached: bool) -> Diagnostic:
    kind = "grant" if isinstance(rule, Grant) else "guard"
    if not reached:
        return _warning(
            "shadowed-rule", rule.position, f"{kind} '{rule.id}' never decides: what it is about is refused in any case", "leave it out"
        )
    twin = next(
        (other.id for other in _rules(policy) if other is not rule and type(other) is type(rule) and _reach(other) == _reach(rule)), ""
    )
    why = f"'{twin}' says the same" if twin else "others say the same together"
    return _warning("redundant-rule", rule.position, f"{kind} '{rule.id}' changes nothing: {why}", "leave one of them out")


def _actions_of_nobody(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield guards on what nobody may do anyway, and work that nobody may do."""
    granted = {action for grant in policy.grants for action in grant.actions}
    for guard in policy.guards:
        idle = sorted(action.value for action in guard.actions if action not in granted | {Action.MERGE, Action.START} | OWNER_ACTIONS)
        if idle:
            message = f"guard '{guard.id}' is about {', '.join(idle)}, which no grant gives"
            yield _warning("guard-without-grant", guard.position, message, "grant it, or leave it out of the guard")
    missing = [action.value for action in WORK if action not in granted and action is not Action.START]
    if missing:
        message = f"no grant gives {', '.join(missing)}: no work gets to the protected branch by itself"
        yield _warning("action-without-grant", policy.grants_at, message, "add grants, or leave it so when people decide everything")


def _checks_of_nothing(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield conditions on results that no check gives."""
    if policy.checks:
        return
    for rule in _rules(policy):
        for condition in rule.when:
            if condition.subject == "checks" and "none" not in condition.words and isinstance(rule, Grant):
                message = f"'{rule.id}' wants the result of a check, and the policy declares none"
                yield _warning("no-such-check", rule.position, message, "declare a check, or allow 'none'")


# -- people -----------------------------------------------------------------------------------------------------------


def _idle_roles(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield roles that no rule looks at."""
    named = {role for rule in _rules(policy) for role in rule.who.roles} | {ask.required_role for _, _, ask in _questions(policy)} | {OWNER}
    for role in sorted(policy.roles.keys() - named):
        yield _warning("unused-role", policy.roles_at, f"no rule names the role '{role}'", "name it in a rule, or leave it out")


def _too_few_people(policy: CompiledPolicy, known: Known | None) -> Iterator[Diagnostic]:
    """Yield questions that nobody, or too few, could answer. The owner answers every question."""
    for position, what, ask in _questions(policy):
        members = _members(policy, known, ask.required_role)
        able = members | _members(policy, known, OWNER)
        if ask.approvals > len(able):
            message = f"{what} wants {ask.approvals} people and {len(able)} could answer"
            yield _error("too-few-approvers", position, message, f"give the role '{ask.required_role}' to more people")
        elif not members:
            message = f"{what} asks the role '{ask.required_role}', which nobody has: only the owner can answer"
            yield _warning("role-without-people", position, message, "give somebody the role")


def _questions(policy: CompiledPolicy) -> Iterator[tuple[Position, str, Ask]]:
    for guard in policy.guards:
        if guard.ask is not None:
            yield guard.position, f"'{guard.id}'", guard.ask
    if policy.rule_of_two.ask is not None and policy.rule_of_two.enabled:
        yield policy.rule_of_two.position, "rule_of_two", policy.rule_of_two.ask


def _members(policy: CompiledPolicy, known: Known | None, role: str) -> frozenset[str]:
    standing = {name for name, roles in known.principals.items() if role in roles} if known else set()
    return policy.roles.get(role, frozenset()) | standing


def _strangers(policy: CompiledPolicy, known: Known) -> Iterator[Diagnostic]:
    """Yield names that the installation does not know."""
    for role, members in sorted(policy.roles.items()):
        for name in sorted(members - known.principals.keys()):
            yield _warning(
                "unknown-principal", policy.roles_at, f"the role '{role}' names {name}, who is not known", f"nas principal add {name}"
            )
    for rule in _rules(policy):
        for names in (rule.who.principals, rule.who.on_behalf_of):
            texts = [] if names is None else [pattern.text for pattern in names.patterns]
            for text in texts:
                if not any(names is not None and covers(text, name) for name in known.principals):
                    yield _warning(
                        "unknown-principal", rule.position, f"'{rule.id}' names {text}, which is nobody", f"nas principal add {text}"
                    )


# -- labels -----------------------------------------------------------------------------------------------------------


def _idle_labels(policy: CompiledPolicy) -> Iterator[Diagnostic]:
    """Yield labels that change nothing: what everything has, what others give as well, what no rule looks at."""
    for rule in policy.labels:
        others = [other for other in policy.labels if other is not rule]
        if rule.label == DEFAULT and not rule.names:
            yield _warning("idle-label", rule.position, "this label is the one that everything has", "leave it out")
        elif _given_by_others(rule, others):
            yield _warning("idle-label", rule.position, "other labels say the same of these paths", "leave it out")
        elif not _looked_at(policy, rule.label):
            yield _warning(
                "idle-label", rule.position, f"no rule looks at {rule.label}", "write a guard about it, or turn the Rule of Two on"
            )


def _given_by_others(rule: LabelRule, others: list[LabelRule]) -> bool:
    def label_over(text: str) -> Label:
        return join_all(other.label for other in others if any(covers(wide.text, text) for wide in other.paths.patterns))

    covered_everywhere = all(
        any(covers(wide.text, each.text) for other in others for wide in other.paths.patterns) for each in rule.paths.patterns
    )
    return covered_everywhere and not rule.names and all(rule.label.within(label_over(each.text)) for each in rule.paths.patterns)


def _looked_at(policy: CompiledPolicy, label: Label) -> bool:
    conditions = [condition for rule in _rules(policy) for condition in rule.when]
    if policy.rule_of_two.enabled and (label.untrusted or label.secret):
        return True
    return any(
        condition.subject == "rule_of_two"
        or (condition.subject == "origin" and label.origin is not DEFAULT.origin)
        or (condition.subject == "sensitivity" and label.sensitivity is not DEFAULT.sensitivity)
        for condition in conditions
    )


_LOOKS: tuple[Callable[[CompiledPolicy], Iterator[Diagnostic]], ...] = (
    _idle_conditions,
    _paths_of_nothing,
    _patterns_twice,
    _limits_of_nothing,
    _contradicting_questions,
    _actions_of_nobody,
    _checks_of_nothing,
    _idle_roles,
    _idle_labels,
)
