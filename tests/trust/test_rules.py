"""The small pure rules: leases, budgets, gates, secrets, canonical text, denials, the cache."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trust.policy.test_decide import policy
from tests.trust.samples import NOW, WHOLE_TREE, facts
from trust.budgets import Account, check_amounts, check_charge, left_of
from trust.cache import FOREVER, DecisionCache, valid_until
from trust.canonical import canonical, redact
from trust.denials import OVERFLOW, WINDOW, Denials
from trust.errors import BudgetSpent, LeaseExpired, LeaseRevoked, ScopeInvalid, Widened
from trust.leases import (
    apply_caveat,
    caveat_between,
    check_scope,
    lease_state,
    meet_patterns,
    narrow_scope,
    require_usable,
)
from trust.model import (
    Action,
    BudgetKind,
    Epoch,
    Lease,
    LeaseId,
    LeaseState,
    PrincipalName,
    RunId,
    Scope,
)
from trust.policy import decide
from trust.secret import Secret

LEASE = Lease(LeaseId("l1"), RunId("r1"), PrincipalName("coder"), PrincipalName("ana"), replace(WHOLE_TREE, not_before=10, expires=20), 5)


# leases


@pytest.mark.parametrize(
    ("now", "state"),
    [(9, LeaseState.PENDING), (10, LeaseState.LIVE), (19, LeaseState.LIVE), (20, LeaseState.EXPIRED), (21, LeaseState.EXPIRED)],
)
def test_a_lease_counts_from_its_first_second_and_not_at_its_last(now: int, state: LeaseState) -> None:
    assert lease_state(LEASE, now) is state
    assert lease_state(replace(LEASE, revoked=1), now) is LeaseState.REVOKED


def test_an_ended_lease_says_how_it_ended() -> None:
    require_usable(LEASE, 5)
    with pytest.raises(LeaseExpired):
        require_usable(LEASE, 20)
    with pytest.raises(LeaseRevoked, match="stolen"):
        require_usable(replace(LEASE, revoked=1, reason="stolen"), 15)


@pytest.mark.parametrize(
    "changes",
    [
        {"paths": ()},
        {"paths": ("/src",)},
        {"paths": ("x",) * 300},
        {"actions": frozenset()},
        {"actions": frozenset({Action.MERGE})},
        {"expires": NOW},
        {"not_before": 3000},
        {"budgets": {BudgetKind.READS: -1}},
        {"budgets": {BudgetKind.READS: 1 << 63}},
        {"purpose": "x" * 201},
    ],
)
def test_a_scope_that_can_not_be_is_refused(changes: dict[str, Any]) -> None:
    check_scope(WHOLE_TREE, NOW)
    with pytest.raises(ScopeInvalid):
        check_scope(replace(WHOLE_TREE, **changes), NOW)


PARENT = Scope(("src/**",), frozenset({Action.READ, Action.LIST}), 10, 90, "why", {BudgetKind.READS: 50})


@pytest.mark.parametrize(
    "changes",
    [
        {"paths": ("**",)},
        {"paths": ("src/**", "docs")},
        {"actions": frozenset({Action.READ, Action.WRITE})},
        {"expires": 91},
        {"not_before": 9},
        {"budgets": {BudgetKind.READS: 51}},
    ],
)
def test_narrowing_never_widens(changes: dict[str, Any]) -> None:
    with pytest.raises(Widened):
        narrow_scope(PARENT, replace(PARENT, **changes))


def test_what_a_narrowing_leaves_open_comes_from_the_parent() -> None:
    narrowed = narrow_scope(PARENT, Scope(("src/a",), frozenset({Action.READ}), 10, 50, budgets={BudgetKind.COMMITS: 1}))
    assert narrowed.budgets == {BudgetKind.READS: 50, BudgetKind.COMMITS: 1} and narrowed.purpose == "why"


narrowings = st.builds(
    Scope,
    paths=st.lists(st.sampled_from(["src/**", "src/a/**", "src/*", "src/b"]), min_size=1, max_size=3, unique=True).map(tuple),
    actions=st.frozensets(st.sampled_from([Action.READ, Action.LIST])),
    not_before=st.integers(10, 40),
    expires=st.integers(50, 90),
    purpose=st.sampled_from(["", "why", "other"]),
    budgets=st.dictionaries(st.sampled_from(list(BudgetKind)), st.integers(0, 50), max_size=3),
)


@given(narrowings)
def test_the_caveat_of_a_narrowing_gives_that_narrowing(wanted: Scope) -> None:
    narrowed = narrow_scope(PARENT, wanted)
    caveat = json.loads(canonical(caveat_between(PARENT, narrowed)))
    assert apply_caveat(PARENT, caveat) == narrowed


def test_paths_meet_where_one_covers_the_other() -> None:
    assert meet_patterns(("src/**", "docs/*"), ("src/a/**", "docs/*", "**/x")) == ("src/a/**", "docs/*")
    assert meet_patterns(("src/**",), ("**",)) == ("src/**",)


# budgets


def test_a_charge_is_covered_by_every_account_or_refused() -> None:
    accounts = [Account(LeaseId("l2"), BudgetKind.READS, 10, 4), Account(LeaseId("l1"), BudgetKind.READS, 100, 97)]
    check_charge(accounts, {BudgetKind.READS: 3})
    with pytest.raises(BudgetSpent, match="lease l1 has 3 left"):
        check_charge(accounts, {BudgetKind.READS: 4})
    check_charge(accounts, {BudgetKind.COMMITS: 99})
    assert left_of(accounts) == {BudgetKind.READS: 3}


def test_an_unlimited_account_counts_and_a_spent_one_has_nothing_left() -> None:
    unlimited = Account(LeaseId("l1"), BudgetKind.READS, None, 10**9)
    check_charge([unlimited], {BudgetKind.READS: 10**9})
    assert left_of([unlimited]) == {} and left_of([replace(unlimited, limit=5)]) == {BudgetKind.READS: 0}


@pytest.mark.parametrize("amount", [-1, 1 << 63])
def test_an_amount_is_a_whole_number_of_a_size_that_adds_up(amount: int) -> None:
    with pytest.raises(ScopeInvalid):
        check_amounts({BudgetKind.READS: amount})


# secrets and text


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(b"hunter2")
    for shown in (repr(secret), str(secret), f"{secret}", f"{[secret]!r}"):
        assert "hunter2" not in shown
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        hash(secret)
    assert secret == Secret(b"hunter2") and secret != Secret(b"hunter3") and secret != b"hunter2"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=9,
    )
)
def test_canonical_text_has_one_spelling_and_comes_back(value: object) -> None:
    text = canonical(value)
    assert canonical(json.loads(text)) == text and text.isascii() and "\n" not in text


def test_canonical_text_refuses_what_is_no_number() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical(float("nan"))


def test_redacting_hits_tokens_and_nothing_else() -> None:
    secret = "anl1.WyJsYWJjIixbXV0." + "x" * 43
    assert redact(f'{{"a":"{secret} and {secret}"}}') == '{"a":"anl1.[redacted] and anl1.[redacted]"}'
    assert redact('{"path":"anl1.txt","other":"nat1.c"}') == '{"path":"anl1.txt","other":"nat1.c"}'


# denials


def test_repeats_within_a_minute_are_counted() -> None:
    denials = Denials()
    assert denials.add("l1", "read", "a", "r", 100)
    assert not any(denials.add("l1", "read", "a", "r", 100 + second) for second in range(59))
    assert denials.add("l1", "read", "b", "r", 130)
    assert not denials.due(159) and denials.due(160)
    taken = denials.take(160)
    assert [(each.path, each.count, each.first, each.last) for each in taken] == [("a", 60, 100, 158)]
    assert [each.path for each in denials.take()] == ["b"] and denials.take() == ()
    assert denials.add("l1", "read", "a", "r", 161)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz", max_size=3), st.integers(0, 9)), max_size=300))
def test_a_storm_is_bounded_and_counted_whole(storm: list[tuple[str, str, int]]) -> None:
    denials = Denials(limit=5)
    for lease, path, now in storm:
        denials.add(lease, "read", path, "rule", now)
    taken = denials.take(9 + WINDOW)
    assert sum(each.count for each in taken) == len(storm)
    assert len(taken) <= 2 * 5 + 1
    assert len({each.path for each in taken}) <= 5 or any(each.path == OVERFLOW for each in taken)


# the cache

ASKED = facts()
ALLOWED = decide(policy(), ASKED)


def test_one_decision_serves_a_directory_whose_names_are_all_alike() -> None:
    cache, deep = DecisionCache(), facts(path=b"src/x/a.py", action=Action.LIST)
    cache.keep(Epoch(1), "l1", b"src/x", b"a.py", policy(), deep, decide(policy(), deep))
    assert cache.find(Epoch(1), "l1", Action.LIST, b"src/x", b"b.py", NOW) == decide(policy(), deep)
    for missed in (("l2", Action.LIST, b"src/x"), ("l1", Action.READ, b"src/x"), ("l1", Action.LIST, b"src")):
        assert cache.find(Epoch(1), *missed, b"b.py", NOW) is None


def test_a_directory_with_rules_about_names_is_kept_by_name() -> None:
    cache = DecisionCache()
    cache.keep(Epoch(1), "l1", b"src", b"a.py", policy(), ASKED, ALLOWED)
    assert cache.find(Epoch(1), "l1", Action.READ, b"src", b"a.py", NOW) == ALLOWED
    assert cache.find(Epoch(1), "l1", Action.READ, b"src", b"id_rsa", NOW) is None


def test_a_denial_is_kept_for_its_own_path() -> None:
    cache, asked = DecisionCache(), facts(path=b"lib/a", action=Action.DELETE)
    cache.keep(Epoch(1), "l1", b"lib", b"a", policy(), asked, decide(policy(), asked))
    assert policy().uniform_below(Action.DELETE, b"lib")
    assert cache.find(Epoch(1), "l1", Action.DELETE, b"lib", b"a", NOW) is not None
    assert cache.find(Epoch(1), "l1", Action.DELETE, b"lib", b"b", NOW) is None


def test_a_change_of_epoch_and_the_clock_end_an_entry() -> None:
    cache = DecisionCache()
    cache.keep(Epoch(1), "l1", b"src", b"a.py", policy(), ASKED, ALLOWED)
    assert cache.find(Epoch(1), "l1", Action.READ, b"src", b"a.py", 1_999) is not None
    assert cache.find(Epoch(1), "l1", Action.READ, b"src", b"a.py", 2_000) is None
    assert cache.find(Epoch(2), "l1", Action.READ, b"src", b"a.py", NOW) is None
    cache.keep(Epoch(2), "l1", b"src", b"b.py", policy(), ASKED, ALLOWED)
    assert cache.find(Epoch(2), "l1", Action.READ, b"src", b"a.py", NOW) is None


def test_the_cache_is_bounded_and_keeps_no_budget_denial() -> None:
    cache = DecisionCache(limit=3)
    for number in range(10):
        cache.keep(Epoch(1), f"l{number}", b"src", b"a.py", policy(), ASKED, ALLOWED)
    assert sum(cache.find(Epoch(1), f"l{n}", Action.READ, b"src", b"a.py", NOW) is not None for n in range(10)) <= 3
    spent = facts(left={BudgetKind.READS: 0}, needs={BudgetKind.READS: 1})
    cache.keep(Epoch(1), "l1", b"src", b"a.py", policy(), spent, decide(policy(), spent))
    assert cache.find(Epoch(1), "l1", Action.READ, b"src", b"a.py", NOW) is None


def test_an_answer_ends_when_the_clock_alone_could_change_it() -> None:
    assert valid_until(facts(lease=None)) == FOREVER
    assert valid_until(facts(lease=replace(WHOLE_TREE, not_before=NOW + 5))) == NOW + 5
    assert valid_until(ASKED) == 2_000
    assert valid_until(facts(now=5_000)) == FOREVER


@given(
    st.sampled_from([b"src", b"src/x", b"lib", b"docs"]), st.sampled_from([b"a", b"id_rsa", b"x.md"]), st.sampled_from([b"b", b"id_rsa"])
)
def test_a_cached_decision_is_the_decision(directory: bytes, one: bytes, other: bytes) -> None:
    cache = DecisionCache()
    for action in (Action.READ, Action.WRITE, Action.LIST):
        asked = facts(path=directory + b"/" + one, action=action)
        cache.keep(Epoch(1), "l1", directory, one, policy(), asked, decide(policy(), asked))
        found = cache.find(Epoch(1), "l1", action, directory, other, NOW)
        assert found is None or found.effect is decide(policy(), facts(path=directory + b"/" + other, action=action)).effect
