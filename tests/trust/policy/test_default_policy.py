from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trust.samples import NOW, facts, merge
from trust.model import Action, BudgetKind, Effect, Facts, PrincipalKind, Scope
from trust.policy import compile_policy, decide, default_policy

POLICY = compile_policy(default_policy(), "default.yaml")


def effect(asked: Facts) -> Effect:
    return decide(POLICY, asked).effect


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (merge(b"a", files=200, bytes=20 << 20, deletes=20), Effect.ALLOW),
        (merge(b"a", checks="passed"), Effect.ALLOW),
        (merge(b"a", files=201), Effect.GATE),
        (merge(b"a", bytes=(20 << 20) + 1), Effect.GATE),
        (merge(b"a", deletes=21), Effect.GATE),
        (merge(b"a", twins=1), Effect.GATE),
        (merge(b"a", b".nas/policy.yaml"), Effect.GATE),
        (merge(b"a", checks="failed"), Effect.GATE),
        (merge(b"a", checks="missing"), Effect.GATE),
        (merge(b"a", b"deploy/id_ed25519"), Effect.DENY),
    ],
)
def test_small_clean_proposals_merge_and_large_ones_ask(asked: Facts, expected: Effect) -> None:
    assert effect(asked) is expected


def test_a_question_goes_to_the_owner_for_a_day_and_then_means_no() -> None:
    ask = decide(POLICY, merge(b"a", deletes=21)).ask
    assert ask is not None and (ask.required_role, ask.deadline, ask.fallback) == ("owner", 86400, "reject")


@pytest.mark.parametrize("path", [b".env", b"app/.env", b".aws/credentials", b"x/.ssh/id_rsa", b"tls/server-key.pem"])
def test_credential_files_are_out_of_reach(path: bytes) -> None:
    assert effect(facts(path=path)) is effect(facts(path=path, action=Action.WRITE)) is Effect.DENY


@pytest.mark.parametrize("path", [b"certifi/cacert.pem", b".env.example", b"docs/environment", b"id_rsa.pub"])
def test_public_files_of_similar_names_pass(path: bytes) -> None:
    assert effect(facts(path=path)) is Effect.ALLOW


def test_who_may_look_at_a_run_can_not_change_it() -> None:
    person = facts(kind=PrincipalKind.HUMAN, lease=None, lease_state=None)
    assert effect(person) is effect(replace(person, action=Action.LIST)) is Effect.ALLOW
    for action in (Action.WRITE, Action.DELETE, Action.PROPOSE):
        assert effect(replace(person, action=action)) is Effect.DENY


def test_the_owners_runs_get_the_whole_tree_for_a_day() -> None:
    actions = frozenset({Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.PROPOSE})
    scope = Scope(("**",), actions, NOW, NOW + 86400, budgets={BudgetKind.BYTES_WRITTEN: 50 << 30})
    asked = facts(action=Action.START, path=None, lease=None, lease_state=None, request=scope, roles=frozenset({"owner"}))
    assert effect(asked) is Effect.ALLOW
    assert effect(replace(asked, request=replace(scope, expires=NOW + 86401))) is Effect.GATE
    assert effect(replace(asked, roles=frozenset())) is Effect.DENY
