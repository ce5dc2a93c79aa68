from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trust.policy.generated import compiled, documents, judged_facts
from tests.trust.samples import facts, merge
from trust.canonical import canonical
from trust.facts import MOST_PATHS, judged
from trust.labels import Label, Origin, Sensitivity
from trust.model import Action, Effect, Facts, GateId
from trust.policy import CompiledPolicy, compile_policy, decide, default_policy
from trust.policy.replay import Recorded, refit, replay

DEFAULT = compile_policy(default_policy(), "default.yaml")


def nobody(_: str) -> frozenset[str]:
    return frozenset()


def record(policy: CompiledPolicy, asked: Facts, sequence: int = 1) -> Recorded:
    return Recorded(sequence, "merge", json.loads(canonical(judged(policy.hash, asked, decide(policy, asked)))))


def archive(*policies: CompiledPolicy) -> Any:
    return {policy.hash: policy for policy in policies}.get


@settings(max_examples=50, deadline=None)
@given(documents, st.lists(judged_facts() | st.builds(lambda each: replace(each, gate=GateId("g1")), judged_facts()), max_size=10))
def test_what_was_recorded_comes_out_again_to_the_bit(document: dict[str, Any], asked: list[Facts]) -> None:
    policy = compiled(document)
    result = replay([record(policy, each) for each in asked], archive(compiled(document, "elsewhere.yaml")), policy, nobody)
    assert (result.decisions, result.confirmed, result.contradicted) == (len(asked), len(asked), 0)
    assert not result.moved


@settings(max_examples=50, deadline=None)
@given(documents, documents, st.lists(judged_facts(), max_size=10))
def test_what_would_change_is_what_the_proposed_policy_decides_otherwise(
    one: dict[str, Any], other: dict[str, Any], asked: list[Facts]
) -> None:
    before, after = compiled(one), compiled(other)
    result = replay([record(before, each, at) for at, each in enumerate(asked)], archive(before), after, nobody)
    expected = []
    for at, each in enumerate(asked):
        old, new = decide(before, each), decide(after, refit(each, before, after, nobody))
        if (old.effect, old.ask) != (new.effect, new.ask):
            expected.append((at, old.effect, new.effect))
    assert [(each.sequence, each.before.effect, each.after.effect) for each in result.examples] == expected
    assert sum(result.moved.values()) == len(expected)


def test_an_approved_merge_is_compared_by_what_would_be_asked() -> None:
    approved = replace(merge(b"a", deletes=30), gate=GateId("g1"))
    wider = compile_policy(default_policy().replace("at_least: 21\n", "at_least: 50\n"), "proposed.yaml")
    result = replay([record(DEFAULT, approved)], archive(DEFAULT), wider, nobody)
    assert dict(result.moved) == {("gate", "allow"): 1}
    assert result.examples[0].facts == approved


def test_half_of_the_facts_are_never_judged() -> None:
    large = merge(*(f"f{number:04}".encode() for number in range(MOST_PATHS + 1)))
    result = replay([record(DEFAULT, large), Recorded(2, "merge", {"policy": DEFAULT.hash})], archive(DEFAULT), DEFAULT, nobody)
    assert (result.decisions, result.incomplete, result.confirmed) == (2, 2, 0)
    assert [trouble.sequence for trouble in result.troubles] == [1, 2] and "200 of 201" in result.troubles[0].why


def test_a_record_that_was_altered_contradicts_itself() -> None:
    kept = record(DEFAULT, facts(path=b"a/id_rsa"))
    for change in (
        {"decision": {**kept.judged["decision"], "effect": "allow"}},
        {"facts": {**kept.judged["facts"], "path": "a/x"}},
        {"hash": "0" * 64},
    ):
        result = replay([replace(kept, judged={**kept.judged, **change})], archive(DEFAULT), None, nobody)
        assert (result.contradicted, result.confirmed) == (1, 0), change


def test_a_policy_that_is_not_archived_is_told() -> None:
    result = replay([record(DEFAULT, facts())], archive(), None, nobody)
    assert (result.unknown_policy, result.confirmed) == (1, 0) and DEFAULT.hash in result.troubles[0].why


HEAD = "version: 1\nroles: {owner: [ana], reviewer: [%s]}\n"
GRANT = "grants: [{id: r, who: {roles: [reviewer]}, actions: [read]}]\n"


def test_whoever_acted_has_the_roles_that_the_proposed_policy_gives() -> None:
    before, after = (compile_policy(HEAD % member + GRANT, "p") for member in ("coder", "bo"))
    asked = facts(roles=frozenset({"reviewer"}))
    assert dict(replay([record(before, asked)], archive(before), after, nobody).moved) == {("allow", "deny"): 1}
    standing = replay([record(before, asked)], archive(before), after, lambda name: frozenset({"reviewer"} if name == "coder" else ()))
    assert not standing.moved
    starting = replace(asked, action=Action.START, principal=asked.principal, on_behalf_of=asked.principal)
    assert refit(starting, before, after, nobody).roles == frozenset()


def test_paths_have_the_labels_that_the_proposed_policy_puts_on_them() -> None:
    after = compile_policy(default_policy().replace('["secrets/**", ', '["src/**", '), "proposed.yaml")
    asked = facts(path=b"src/a", taint=Label(Origin.EXTERNAL, Sensitivity.INTERNAL), outward=True)
    result = replay([record(DEFAULT, asked)], archive(DEFAULT), after, nobody)
    assert result.examples[0].after.rule == "rule-of-two" and result.examples[0].after.effect is Effect.GATE
