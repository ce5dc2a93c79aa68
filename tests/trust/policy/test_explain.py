from __future__ import annotations

from hypothesis import given

from tests.trust.policy.generated import judged_facts
from tests.trust.policy.test_decide import any_facts, policy
from tests.trust.samples import facts, merge
from trust.model import Action, Effect, Facts
from trust.policy import decide, explain
from trust.policy.decide import ENVELOPE


@given(any_facts | judged_facts())
def test_an_explanation_agrees_with_the_decision(asked: Facts) -> None:
    explanation = explain(policy(), asked)
    assert explanation.decision == decide(policy(), asked)
    applying = {each.rule: each for each in explanation.considered if not each.failed}
    decision = explanation.decision
    if decision.effect is Effect.GATE:
        assert set(decision.asking) - {ENVELOPE} == {rule for rule, each in applying.items() if each.kind == "gate"}
        assert not [each for each in applying.values() if each.kind == "refuse"]
    if decision.rule in {rule.id for rule in policy().grants} and decision.effect is Effect.ALLOW and asked.action is not Action.MERGE:
        assert applying[decision.rule].kind == "grant"
    if decision.rule == "default" and asked.action not in {Action.MERGE, Action.START}:
        assert not [each for each in applying.values() if each.kind in {"grant", "refuse"}]


@given(judged_facts())
def test_every_rule_is_considered_once(asked: Facts) -> None:
    considered = [each.rule for each in explain(policy(), asked).considered]
    assert len(set(considered)) == len(considered)
    assert {*considered} >= {rule.id for rule in (*policy().grants, *policy().guards)}


def test_every_rule_tells_the_first_condition_that_failed() -> None:
    failed = {each.rule: each.failed for each in explain(policy(), facts(path=b"lib/a", action=Action.WRITE)).considered}
    assert failed == {
        "no-keys": "paths",
        "rules": "actions",
        "many": "actions",
        "work": "paths",
        "wide-read": "actions",
        "bo-starts": "actions",
        "small": "actions",
        "docs": "actions",
    }


def test_a_change_tells_which_condition_and_how_many_paths() -> None:
    explanation = explain(policy(), merge(b"docs/a", b"src/b", files=9, checks="passed"))
    failed = {each.rule: each.failed for each in explanation.considered}
    assert explanation.decision.effect is Effect.DENY
    assert (failed["small"], failed["docs"]) == ("files at_most 3", "paths: 1 of 2 changed paths")
    assert {each.rule: each.kind for each in explanation.considered}["rules"] == "gate"
