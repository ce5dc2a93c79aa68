from __future__ import annotations

import contextlib
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trust.policy.test_decide import any_facts, policy
from tests.trust.samples import FACTS, facts, merge
from trust.canonical import canonical
from trust.errors import FactsIncomplete
from trust.facts import _CHANGE, _FACTS, _SCOPE, MOST_PATHS, describe_decision, describe_facts, hash_facts, judged, read_facts
from trust.model import ChangeFacts, Facts, PrincipalName, Scope
from trust.policy import decide


@given(any_facts)
def test_facts_come_back_from_a_record_as_they_were(asked: Facts) -> None:
    assert read_facts(json.loads(canonical(describe_facts(asked)))) == asked


@given(any_facts)
def test_a_decision_taken_again_from_a_record_is_the_same(asked: Facts) -> None:
    kept = json.loads(canonical(judged("p", asked, decide(policy(), asked))))
    again = read_facts(kept["facts"])
    assert describe_decision(decide(policy(), again)) == kept["decision"] and hash_facts(again) == kept["hash"]


@given(any_facts, any_facts)
def test_the_hash_tells_facts_apart(one: Facts, other: Facts) -> None:
    assert (hash_facts(one) == hash_facts(other)) == (one == other)


def test_names_that_are_no_text_survive() -> None:
    asked = merge(b"\xff/\x80", b"caf\xc3\xa9")
    assert read_facts(json.loads(canonical(describe_facts(asked)))) == asked


def test_a_large_change_is_cut_and_never_judged_by_half() -> None:
    paths = tuple(f"f{number:04}".encode() for number in range(MOST_PATHS + 1))
    whole, other = merge(*paths), merge(*paths[:-1], b"other")
    description = describe_facts(whole)
    assert len(description["change"]["paths"]) == MOST_PATHS
    assert hash_facts(whole) != hash_facts(other)
    with pytest.raises(FactsIncomplete, match="200 of 201"):
        read_facts(description)
    assert read_facts(describe_facts(merge(*paths[:MOST_PATHS]))) == merge(*paths[:MOST_PATHS])


@pytest.mark.parametrize("name", [field.name for field in fields(Facts)])
def test_a_record_that_lacks_a_fact_is_refused(name: str) -> None:
    description = describe_facts(FACTS)
    del description[name]
    with pytest.raises(FactsIncomplete):
        read_facts(description)


@given(st.sampled_from([field.name for field in fields(Facts)]), st.sampled_from([{"no": 1}, 1.5, ["x", 3], "nonsense", 7, True]))
def test_a_fact_of_the_wrong_kind_is_refused_or_is_another_fact(name: str, value: object) -> None:
    description = describe_facts(FACTS) | {name: value}
    with contextlib.suppress(FactsIncomplete):
        assert describe_facts(read_facts(description)) == description


def test_what_a_later_release_added_is_not_guessed() -> None:
    with pytest.raises(FactsIncomplete, match="mood"):
        read_facts(describe_facts(FACTS) | {"mood": "good"})


def test_an_older_record_has_the_defaults_of_what_came_later() -> None:
    description = describe_facts(facts(lease=Scope(("a",), frozenset(), 0, 9)))
    del description["lease"]["destinations"], description["lease"]["holder"]
    assert read_facts(description).lease == Scope(("a",), frozenset(), 0, 9)


def test_every_fact_has_a_reader() -> None:
    for kind, readers in ((Facts, _FACTS), (Scope, _SCOPE), (ChangeFacts, _CHANGE)):
        assert [field.name for field in fields(kind)] == list(readers)


def test_sets_have_one_order() -> None:
    asked = replace(FACTS, roles=frozenset({"b", "a", "c"}), principal=PrincipalName("x"))
    assert describe_facts(asked)["roles"] == ["a", "b", "c"]
