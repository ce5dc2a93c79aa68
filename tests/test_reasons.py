"""The look at every decision sees every decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

import nasd.authority
import trust.policy
from tests import reasons
from tests.trust.samples import FACTS, facts
from trust.model import Action, Denial, Effect
from trust.policy import compile_policy, default_policy

POLICY = compile_policy(default_policy(), "default.yaml")


def test_a_decision_is_looked_at_under_every_name() -> None:
    before = reasons.looked_at
    assert nasd.authority.decide(POLICY, facts(path=b"a/id_rsa")).effect is Effect.DENY
    assert trust.policy.decide(POLICY, facts(action=Action.ADMINISTER, lease=None, lease_state=None, path=None)).effect is Effect.DENY
    assert reasons.looked_at == before + 2
    assert trust.policy.decide(POLICY, FACTS).effect is Effect.ALLOW and reasons.looked_at == before + 2


@pytest.mark.parametrize(
    "change", [{"reason": " "}, {"rule": ""}, {"hint": ""}, {"denial": Denial.NONE}, {"effect": Effect.GATE}, {"position": None}]
)
def test_a_decision_that_lacks_something_is_told(change: dict[str, object]) -> None:
    whole = trust.policy.decide(POLICY, facts(path=b"a/id_rsa"))
    reasons.look(whole, FACTS)
    assert reasons.take() == []
    if change == {"position": None}:
        change = {"position": replace(whole.position, file="")}
    reasons.look(replace(whole, **change), FACTS)  # type: ignore[arg-type]
    assert len(reasons.take()) == 1
