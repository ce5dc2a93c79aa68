from __future__ import annotations

from hypothesis import given

from tests.trust.policy.test_decide import any_facts, policy
from tests.trust.samples import facts, merge
from trust.model import Action, Effect, Facts
from trust.policy import explain


@given(any_facts)
def test_an_explanation_decides_what_a_decision_decides(asked: Facts) -> None:
    explanation = explain(policy(), asked)
    ids = {each.rule: each for each in explanation.considered}
    assert len(ids) == len(policy().grants) + len(policy().guards)
    decided = ids.get(explanation.decision.rule)
    assert decided is None or not decided.failed or asked.action is Action.MERGE


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
