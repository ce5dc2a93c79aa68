from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trust.policy.generated import compiled, documents, judged_facts
from trust.model import Action, Ask, Decision, Effect, Facts, GateId, Scope
from trust.policy import compile_policy, decide, default_policy
from trust.policy.abstraction import make_space
from trust.policy.diffing import Direction, compare_policies
from trust.policy.outcomes import Verdict, make_reader

EFFECTS = {Verdict.ALLOWED: Effect.ALLOW, Verdict.UNGRANTED: Effect.DENY, Verdict.ASKED: Effect.GATE, Verdict.REFUSED: Effect.DENY}

SMALL = Scope(("src/a",), frozenset({Action.READ}), 0, 2)


def essence(decision: Decision) -> tuple[Effect, Ask | None]:
    return decision.effect, decision.ask


@settings(max_examples=20, deadline=None)
@given(documents)
def test_a_cell_says_what_the_decision_about_its_facts_says(document: dict[str, Any]) -> None:
    policy = compiled(document)
    for action in Action:
        space = make_space([policy], action)
        reader = make_reader(policy, space)
        for cell in space.cells:
            outcome = reader.read(cell.applying)
            facts = cell.facts if action is not Action.START else replace(cell.facts, request=SMALL)
            if action is Action.START and outcome.verdict is Verdict.ALLOWED:
                assert decide(policy, facts).effect is not Effect.DENY  # what is requested decides the rest
                continue
            assert (EFFECTS[outcome.verdict], outcome.ask) == essence(decide(policy, facts)), (cell, document)


@settings(max_examples=30, deadline=None)
@given(documents, documents, st.lists(judged_facts(), min_size=20, max_size=40), st.data())
def test_policies_without_a_difference_decide_alike(
    one: dict[str, Any], other: dict[str, Any], asked: list[Facts], data: st.DataObject
) -> None:
    other = data.draw(st.sampled_from([other, *neighbours(one, other)]))
    before, after = compiled(one, "before"), compiled(other, "after")
    diff = compare_policies(before, after)
    assert diff.complete
    moved = {difference.action for difference in diff.decisions}
    for facts in asked:
        for each in (facts, replace(facts, gate=GateId("g1"))):
            if facts.action not in moved:
                assert essence(decide(before, each)) == essence(decide(after, each)), each


def neighbours(one: dict[str, Any], other: dict[str, Any]) -> list[dict[str, Any]]:
    """Return policies that differ from one in little."""
    found = []
    for section in ("grants", "guards"):
        for index in range(len(one[section])):
            less = copy.deepcopy(one)
            del less[section][index]
            found.append(less)
        for rule in other[section]:
            more = copy.deepcopy(one)
            more[section].append({**rule, "id": "added"})
            found.append(more)
    return found


@settings(max_examples=20, deadline=None)
@given(documents, documents)
def test_every_difference_has_a_case_in_point(one: dict[str, Any], other: dict[str, Any]) -> None:
    before, after = compiled(one, "before"), compiled(other, "after")
    for difference in compare_policies(before, after).decisions:
        assert (difference.before, difference.after) == (decide(before, difference.facts), decide(after, difference.facts))
        assert essence(difference.before) != essence(difference.after)


@settings(max_examples=15, deadline=None)
@given(documents, st.randoms(use_true_random=False))
def test_a_policy_differs_from_itself_in_nothing_whatever_the_order_of_its_rules(document: dict[str, Any], chance: Any) -> None:
    shuffled = copy.deepcopy(document)
    for section in ("grants", "guards", "labels"):
        chance.shuffle(shuffled[section])
    diff = compare_policies(compiled(document), compiled(shuffled))
    assert diff.equal and diff.complete


NUMBERED = """
version: 1
roles: {owner: [ana]}
grants: [{id: g, actions: [merge], when: {files: {%s: %d}}}]
"""
BOUNDS = [(operator, number) for operator in ("at_most", "at_least", "equals") for number in (0, 1, 3)]
TRUE = {"at_most": int.__le__, "at_least": int.__ge__, "equals": int.__eq__}


@pytest.mark.parametrize("one", BOUNDS, ids=str)
def test_bounds_differ_exactly_when_some_number_tells_them_apart(one: tuple[str, int]) -> None:
    for other in BOUNDS:
        diff = compare_policies(compile_policy(NUMBERED % one, "a"), compile_policy(NUMBERED % other, "b"))
        differing = [each for each in range(9) if TRUE[one[0]](each, one[1]) != TRUE[other[0]](each, other[1])]
        assert diff.equal == (not differing), other


DEFAULT = compile_policy(default_policy(), "default.yaml")


def changed(before: str, after: str) -> Any:
    assert before in default_policy()
    return compare_policies(DEFAULT, compile_policy(default_policy().replace(before, after), "proposed.yaml"))


def test_a_bound_that_moves_is_found_at_the_bound() -> None:
    diff = changed("at_least: 21\n", "at_least: 50\n")
    (difference,) = diff.decisions
    assert (difference.action, difference.direction) == (Action.MERGE, Direction.WIDER)
    assert difference.facts.change is not None and 21 <= difference.facts.change.deletes < 50
    assert (difference.before.effect, difference.after.effect) == (Effect.GATE, Effect.ALLOW)


def test_a_pattern_that_goes_opens_what_it_covered() -> None:
    diff = changed('      - "**/.netrc"\n', "")
    assert {difference.direction for difference in diff.decisions} == {Direction.WIDER}
    paths = [each.facts.path if each.facts.change is None else each.facts.change.paths[0] for each in diff.decisions]
    assert all(path is not None and path.rpartition(b"/")[2] == b".netrc" for path in paths)
    assert {difference.action for difference in diff.decisions} == {Action.READ, Action.WRITE, Action.MERGE}


def test_an_envelope_that_widens_is_a_lease_given_at_once() -> None:
    diff = changed("ttl: 24h", "ttl: 48h")
    (difference,) = diff.decisions
    assert (difference.action, difference.direction) == (Action.START, Direction.WIDER)
    request = difference.facts.request
    assert request is not None and 86400 < request.expires - difference.facts.now <= 2 * 86400


def test_what_is_written_otherwise_and_means_the_same_is_no_difference() -> None:
    diff = changed('    paths: ["**"]\n    when:\n      checks: [none, passed]\n', "    when:\n      checks: [passed, none]\n")
    assert diff.equal and diff.complete and diff.cells > 1000


def test_what_is_written_otherwise_is_told_pattern_by_pattern() -> None:
    diff = changed('      - "**/.netrc"\n      - "**/.pgpass"\n', '      - "**/.secret"\n')
    (rule,) = diff.rules
    assert (rule.rule, rule.change) == ("credentials-refused", "changed")
    assert rule.what == ("paths -**/.netrc", "paths -**/.pgpass", "paths +**/.secret")
    assert {each.direction for each in diff.decisions} == {Direction.WIDER, Direction.NARROWER} and len(diff.decisions) < 12


def test_a_question_that_goes_to_others_is_told() -> None:
    text = default_policy().replace("owner: [owner]", "owner: [owner]\n  reviewer: [bo]")
    before, after = (compile_policy(each, "p") for each in (text, text.replace("required_role: owner", "required_role: reviewer", 1)))
    diff = compare_policies(before, after)
    assert {difference.direction for difference in diff.decisions} == {Direction.ASKS} and not diff.roles


def test_labels_roles_and_checks_are_compared_by_themselves() -> None:
    text = (
        default_policy()
        .replace("owner: [owner]", "owner: [owner, bo]")
        .replace('["inbox/**", ', '["mail/**", "inbox/**", ')
        .replace("checks: []", "checks:\n  - {id: t, run: [make]}")
    )
    diff = compare_policies(DEFAULT, compile_policy(text, "proposed.yaml"))
    assert not diff.decisions
    (label,), (role,), (check,) = diff.labels, diff.roles, diff.checks
    assert label.path.startswith(b"mail") and label.after.untrusted and not label.before.untrusted
    assert (role.role, role.added, role.removed) == ("owner", ("bo",), ())
    assert check.before is None and check.after is not None and check.after.id == "t"


def test_a_refusal_that_ends_is_told_where_the_path_is_not_granted_but_stands_beside_one_that_is_asked_about() -> None:
    text = """
version: 1
roles: {owner: [ana]}
guards:
  - {id: ask, effect: gate, actions: [merge], paths: ["docs/**"], required_role: owner, deadline: 1h, fallback: reject, reason: ask}
"""
    refusing = text + '  - {id: no, effect: refuse, actions: [merge], paths: ["src/**"], reason: no}\n'
    diff = compare_policies(compile_policy(refusing, "before"), compile_policy(text, "after"))
    change = diff.decisions[0].facts.change
    assert change is not None and len(change.paths) == 2
    assert (diff.decisions[0].before.effect, diff.decisions[0].after.effect) == (Effect.DENY, Effect.GATE)


def test_more_than_can_be_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trust.policy.abstraction.MOST_CELLS", 50)
    assert not compare_policies(DEFAULT, DEFAULT).complete
