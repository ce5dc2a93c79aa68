from __future__ import annotations

import functools
import itertools
import os
import random
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.trust.samples import FACTS, NOW, WHOLE_TREE, facts, merge
from trust.labels import Label, Origin, Sensitivity
from trust.model import (
    Action,
    BudgetKind,
    ChangeFacts,
    Decision,
    Denial,
    Effect,
    Facts,
    GateId,
    LeaseState,
    PrincipalKind,
    PrincipalName,
    Scope,
)
from trust.policy import CompiledPolicy, compile_policy, decide, empty_policy, envelope
from trust.policy.decide import BUILT_IN, OWNER_ACTIONS, POLICY_CHANGE, POLICY_PATH

POLICY = """
version: 1
roles: {owner: [ana], reviewer: [bo]}
grants:
  - {id: work, actions: [list, read, write, delete, propose], paths: ["src/**", "*.md"],
     limits: {ttl: 1000s, budgets: {bytes_written: 100}}}
  - {id: wide-read, actions: [list, read], limits: {ttl: 500s}}
  - {id: bo-starts, who: {on_behalf_of: [bo], kinds: [agent]}, actions: [start]}
  - {id: small, actions: [merge], when: {files: {at_most: 3}}}
  - {id: docs, actions: [merge], paths: ["docs/**"], when: {checks: [passed]}}
guards:
  - {id: no-keys, effect: refuse, actions: [read, write, merge], paths: ["**/id_rsa"], reason: keys stay away}
  - {id: rules, effect: gate, actions: [merge], paths: [".nas/**"], required_role: owner, deadline: 24h, fallback: reject,
     reason: rules change}
  - {id: many, effect: gate, actions: [merge], when: {deletes: {at_least: 2}}, required_role: reviewer, deadline: 1h, fallback: reject,
     reason: much goes}
"""


@functools.lru_cache(maxsize=64)
def policy(text: str = POLICY) -> CompiledPolicy:
    return compile_policy(text, "p.yaml")


def outcome(facts_: Facts, text: str = POLICY) -> tuple[Effect, str, Denial]:
    decision = decide(policy(text), facts_)
    return decision.effect, decision.rule, decision.denial


# what a single decision says


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (facts(), (Effect.ALLOW, "wide-read", Denial.NONE)),
        (facts(path=b"lib/a", action=Action.WRITE), (Effect.DENY, "default", Denial.POLICY)),
        (facts(path=b"a/id_rsa"), (Effect.DENY, "no-keys", Denial.POLICY)),
        (facts(lease_state=LeaseState.REVOKED), (Effect.DENY, "lease", Denial.LEASE_REVOKED)),
        (facts(lease_state=LeaseState.EXPIRED), (Effect.DENY, "lease", Denial.LEASE_EXPIRED)),
        (facts(lease_state=LeaseState.PENDING), (Effect.DENY, "lease", Denial.LEASE_PENDING)),
        (facts(now=2_000), (Effect.DENY, "lease", Denial.LEASE_EXPIRED)),
        (facts(now=1_999), (Effect.ALLOW, "wide-read", Denial.NONE)),
        (facts(lease=replace(WHOLE_TREE, not_before=NOW + 1)), (Effect.DENY, "lease", Denial.LEASE_PENDING)),
        (facts(lease=replace(WHOLE_TREE, actions=frozenset({Action.LIST}))), (Effect.DENY, "lease", Denial.LEASE_ACTION)),
        (facts(lease=replace(WHOLE_TREE, paths=("docs/**",))), (Effect.DENY, "lease", Denial.LEASE_PATH)),
        (facts(action=Action.WRITE, protected=True), (Effect.DENY, "protected", Denial.PROTECTED)),
        (facts(protected=True), (Effect.ALLOW, "wide-read", Denial.NONE)),
        (facts(left={BudgetKind.READS: 1}, needs={BudgetKind.READS: 2}), (Effect.DENY, "budget", Denial.BUDGET)),
        (facts(left={BudgetKind.READS: 2}, needs={BudgetKind.READS: 2}), (Effect.ALLOW, "wide-read", Denial.NONE)),
        (facts(left={}, needs={BudgetKind.READS: 2}), (Effect.ALLOW, "wide-read", Denial.NONE)),
        (facts(disabled=True), (Effect.DENY, "disabled", Denial.DISABLED)),
        (facts(action=Action.PROPOSE, path=None), (Effect.ALLOW, "work", Denial.NONE)),
        (merge(b"a", b"b"), (Effect.ALLOW, "small", Denial.NONE)),
        (merge(b"a", b".nas/policy.yaml"), (Effect.GATE, "rules", Denial.POLICY)),
        (merge(b"a", b".nas"), (Effect.GATE, "rules", Denial.POLICY)),
        (merge(b"a/id_rsa", b".nas/x"), (Effect.DENY, "no-keys", Denial.POLICY)),
        (merge(b"docs/a", b"docs/b", files=9, checks="passed"), (Effect.ALLOW, "docs", Denial.NONE)),
        (merge(b"docs/a", b"src/b", files=9, checks="passed"), (Effect.DENY, "default", Denial.POLICY)),
        (merge(b"docs/a", files=9), (Effect.DENY, "default", Denial.POLICY)),
    ],
)
def test_the_policy_says(asked: Facts, expected: tuple[Effect, str, Denial]) -> None:
    assert outcome(asked) == expected


def test_a_changed_path_may_be_covered_by_one_grant_and_the_next_by_another() -> None:
    text = """
version: 1
roles: {owner: [ana]}
grants:
  - {id: a, actions: [merge], paths: ["a/**"]}
  - {id: b, actions: [merge], paths: ["b/**"]}
"""
    assert outcome(merge(b"a/x", b"b/y"), text)[0] is Effect.ALLOW
    assert outcome(merge(b"a/x", b"c/y"), text)[0] is Effect.DENY
    assert outcome(merge(), text)[0] is Effect.ALLOW


def test_an_approved_gate_answers_what_asks_and_not_what_refuses() -> None:
    gate = GateId("g1")
    assert outcome(replace(merge(b".nas/x"), gate=gate)) == (Effect.ALLOW, "rules", Denial.NONE)
    assert outcome(replace(merge(b".nas/x", b"id_rsa"), gate=gate))[0] is Effect.DENY
    assert outcome(replace(merge(b"x", files=99), gate=gate))[0] is Effect.DENY


def test_several_questions_become_the_tightest_one() -> None:
    decision = decide(policy(), merge(b".nas/x", deletes=2))
    assert decision.ask is not None
    assert (decision.ask.required_role, decision.ask.deadline, decision.ask.fallback) == ("owner", 3600, "reject")
    assert decision.reason == "much goes; rules change"
    single = decide(policy(), merge(b"x", deletes=2))
    assert single.ask is not None and single.ask.required_role == "reviewer"


def test_every_denial_names_a_reason_a_place_and_a_way_on() -> None:
    decision = decide(policy(), facts(path=b"lib/a", action=Action.WRITE))
    assert decision.reason == "no grant lets coder write lib/a"
    assert decision.hint == "grant 'work' fails on paths; ask the role owner to change p.yaml:5:5"
    assert str(decision.position) == "p.yaml:4:1"
    refused = decide(policy(), facts(path=b"a/id_rsa"))
    assert (refused.reason, str(refused.position)) == ("keys stay away: a/id_rsa", "p.yaml:12:5")


# conditions about labels

LABELLED = """
version: 1
roles: {owner: [ana]}
grants:
  - {id: own-words, actions: [read, list], when: {origin: [owner, internal]}}
  - {id: declared, actions: [egress], when: {destination: [declared]}}
  - {id: clean-start, actions: [start], when: {sensitivity: [public, internal]}}
"""
STRANGE = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)
SECRET = Label(Origin.INTERNAL, Sensitivity.SENSITIVE)


def test_a_grant_gives_nothing_when_its_condition_does_not_hold() -> None:
    assert outcome(facts(), LABELLED)[0] is Effect.ALLOW
    assert outcome(facts(label=STRANGE), LABELLED) == (Effect.DENY, "default", Denial.POLICY)
    assert outcome(facts(taint=STRANGE), LABELLED) == (Effect.DENY, "default", Denial.POLICY)
    hint = decide(policy(LABELLED), facts(label=STRANGE)).hint
    assert hint == "grant 'own-words' fails on origin in [internal, owner]; ask the role owner to change p.yaml:5:5"


def test_an_outward_act_needs_the_destination_that_its_grant_wants() -> None:
    lease = replace(WHOLE_TREE, actions=frozenset({Action.EGRESS}), destinations=("forge*",))
    asked = facts(action=Action.EGRESS, path=None, lease=lease, destination="forge-main")
    assert outcome(asked, LABELLED)[0] is Effect.ALLOW
    assert outcome(replace(asked, destination="elsewhere"), LABELLED)[0] is Effect.DENY


def test_a_run_is_not_started_by_a_grant_whose_condition_does_not_hold() -> None:
    asked = replace(request(), roles=frozenset())
    assert outcome(asked, LABELLED)[0] is Effect.GATE
    assert outcome(replace(asked, label=SECRET), LABELLED) == (Effect.DENY, "default", Denial.POLICY)


# the policy itself


@pytest.mark.parametrize("path", [POLICY_PATH, b".nas"])
def test_a_change_of_the_policy_asks_the_owner_whatever_the_policy_says(path: bytes) -> None:
    permissive = "version: 1\nroles: {owner: [ana], reviewer: [bo]}\ngrants: [{id: all, actions: [merge]}]\n"
    asked = merge(path, b"src/a")
    decision = decide(policy(permissive), asked)
    assert (decision.effect, decision.rule, decision.asking) == (Effect.GATE, POLICY_CHANGE, (POLICY_CHANGE,))
    assert decision.ask is not None and decision.ask.required_role == "owner"
    assert decide(policy(permissive), replace(asked, gate=GateId("g1"))).effect is Effect.ALLOW
    assert decide(policy(permissive), merge(b".nas/other", b"nas/policy.yaml", b".nas/policy.yaml.bak")).effect is Effect.ALLOW


def test_a_question_about_the_policy_goes_to_the_owner_beside_any_other() -> None:
    asking = POLICY.replace("required_role: owner, deadline: 24h", "required_role: reviewer, deadline: 1h")
    decision = decide(policy(asking), merge(POLICY_PATH))
    assert decision.ask is not None and (decision.ask.required_role, decision.ask.deadline) == ("owner", 3600)
    assert decision.asking == ("rules", POLICY_CHANGE)


def test_a_refusing_guard_keeps_the_policy_as_it_is() -> None:
    frozen = POLICY + '  - {id: frozen, effect: refuse, actions: [merge], paths: [".nas/**"], reason: frozen}\n'
    assert outcome(replace(merge(POLICY_PATH), gate=GateId("g1")), frozen) == (Effect.DENY, "frozen", Denial.POLICY)


def test_a_policy_that_grants_no_merge_can_be_repaired() -> None:
    assert decide(empty_policy("none"), replace(merge(POLICY_PATH), gate=GateId("g1"))).effect is Effect.ALLOW


# the owner


@pytest.mark.parametrize("action", sorted(OWNER_ACTIONS, key=lambda action: action.value))
def test_no_policy_locks_the_owner_out(action: Action) -> None:
    refusing = POLICY + "  - {id: nothing, effect: refuse, actions: [list, read, restore, administer, answer, observe], reason: no}\n"
    asked = facts(action=action, lease=None, lease_state=None, roles=frozenset({"owner"}))
    assert decide(policy(refusing), asked).position == BUILT_IN
    assert decide(empty_policy("none"), asked).effect is Effect.ALLOW
    assert decide(policy(refusing), replace(asked, roles=frozenset({"reviewer"}))).effect is Effect.DENY


def test_nothing_built_in_writes_merges_or_deletes() -> None:
    for action in (Action.WRITE, Action.DELETE, Action.PROPOSE):
        asked = facts(action=action, lease=None, lease_state=None, roles=frozenset({"owner"}))
        assert decide(empty_policy("none"), asked).effect is Effect.DENY
    assert decide(empty_policy("none"), replace(merge(b"a"), roles=frozenset({"owner"}))).effect is Effect.DENY


def test_a_run_of_the_owner_has_no_more_than_its_lease() -> None:
    asked = facts(path=b"a/id_rsa", roles=frozenset({"owner"}))
    assert decide(policy(), asked).rule == "no-keys"
    assert decide(policy(), replace(asked, action=Action.ADMINISTER, path=None)).denial is Denial.LEASE_ACTION


# starting runs


def request(**changes: Any) -> Facts:
    scope = replace(
        Scope(("src/**",), frozenset({Action.READ, Action.WRITE}), NOW, NOW + 500, budgets={BudgetKind.BYTES_WRITTEN: 100}), **changes
    )
    return facts(action=Action.START, path=None, lease=None, lease_state=None, request=scope, roles=frozenset({"owner"}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"expires": NOW + 501}, "the policy gives 500 seconds and 501 are asked for"),
        ({"budgets": {}}, "the policy gives bytes_written=100 and no limit is asked for"),
        ({"budgets": {BudgetKind.BYTES_WRITTEN: 101}}, "the policy gives bytes_written=100 and 101 is asked for"),
        ({"paths": ("src/**", "lib/**")}, "no grant gives write on all of lib/**"),
        ({"actions": frozenset({Action.DELETE}), "paths": ("**",)}, "no grant gives delete on all of **"),
    ],
)
def test_a_request_outside_the_envelope_waits_for_the_owner(changes: dict[str, Any], reason: str) -> None:
    decision = decide(policy(), request(**changes))
    assert (decision.effect, decision.reason) == (Effect.GATE, reason)
    assert decision.ask is not None and decision.ask.required_role == "owner"
    assert decide(policy(), replace(request(**changes), gate=GateId("g1"))).effect is Effect.ALLOW


NAMED = """
version: 1
roles: {owner: [ana]}
grants:
  - {id: start, actions: [start]}
  - {id: sends, actions: [egress], limits: {destinations: [mail, "code-*"]}}
  - {id: sends-too, actions: [egress], limits: {destinations: [mail, code-main, chat]}}
"""


@pytest.mark.parametrize(
    ("destinations", "effect"),
    [
        ((), Effect.ALLOW),
        (("mail",), Effect.ALLOW),
        (("mail", "code-main"), Effect.ALLOW),
        (("chat",), Effect.GATE),
        (("code-*",), Effect.GATE),
        (("mail", "*"), Effect.GATE),
    ],
)
def test_a_lease_names_at_once_only_accounts_that_every_grant_it_lives_on_lets_it_name(
    destinations: tuple[str, ...], effect: Effect
) -> None:
    asked = request(paths=("**",), actions=frozenset({Action.EGRESS}), budgets={}, destinations=destinations)
    decision = decide(policy(NAMED), asked)
    assert decision.effect is effect
    if effect is Effect.GATE:
        assert "no grant gives egress to" in decision.reason and decision.rule == "envelope"


def test_a_request_inside_the_envelope_is_granted_at_once() -> None:
    assert decide(policy(), request()).effect is Effect.ALLOW


def test_who_may_not_start_is_not_asked_about() -> None:
    stranger = replace(request(), roles=frozenset())
    assert outcome(stranger) == (Effect.DENY, "default", Denial.POLICY)
    assert outcome(replace(stranger, on_behalf_of=PrincipalName("bo"))) == (Effect.ALLOW, "bo-starts", Denial.NONE)


def test_the_envelope_is_the_tighter_limit_of_all_grants_a_lease_lives_on() -> None:
    asked = request()
    assert asked.request is not None
    limits = envelope(policy(), asked, asked.request)
    assert (limits.ttl, limits.budgets) == (500, {BudgetKind.BYTES_WRITTEN: 100})


# laws

scopes = st.builds(
    Scope,
    paths=st.lists(st.sampled_from(["**", "src/**", "docs/*", "**/id_rsa"]), max_size=2).map(tuple),
    actions=st.frozensets(st.sampled_from(list(Action)), max_size=5),
    not_before=st.integers(0, 3),
    expires=st.integers(0, 9),
    budgets=st.dictionaries(st.sampled_from(list(BudgetKind)), st.integers(0, 200), max_size=2),
)
changes_ = st.builds(
    ChangeFacts,
    paths=st.lists(st.sampled_from([b"src/a", b".nas/p", b"docs/x", b"id_rsa", b"\xff"]), max_size=3).map(tuple),
    files=st.integers(0, 5),
    deletes=st.integers(0, 3),
    bytes=st.integers(0, 9),
    twins=st.integers(0, 2),
    checks=st.sampled_from(["none", "passed", "failed", "missing"]),
)
amounts = st.dictionaries(st.sampled_from(list(BudgetKind)), st.integers(0, 5), max_size=2)
any_facts = st.builds(
    Facts,
    now=st.integers(0, 9),
    principal=st.sampled_from([PrincipalName("ana"), PrincipalName("coder")]),
    kind=st.sampled_from(list(PrincipalKind)),
    roles=st.frozensets(st.sampled_from(["owner", "reviewer"])),
    on_behalf_of=st.sampled_from([PrincipalName("ana"), PrincipalName("bo")]),
    action=st.sampled_from(list(Action)),
    path=st.none() | st.sampled_from([b"", b"src", b"src/a", b"a/id_rsa", b"x.md", b"\xff/y"]),
    lease=st.none() | scopes,
    lease_state=st.none() | st.sampled_from(list(LeaseState)),
    left=amounts,
    needs=amounts,
    protected=st.booleans(),
    change=st.none() | changes_,
    request=st.none() | scopes,
    gate=st.none() | st.just(GateId("g1")),
    disabled=st.booleans(),
)


@given(any_facts)
def test_every_combination_of_facts_gives_a_decision(asked: Facts) -> None:
    decision = decide(policy(), asked)
    assert (decision.effect is Effect.ALLOW) == (decision.denial is Denial.NONE)
    assert (decision.effect is Effect.GATE) == (decision.ask is not None)
    assert decision.reason and decision.rule
    assert decision.effect is Effect.ALLOW or decision.hint


@given(any_facts)
def test_a_missing_fact_never_allows(asked: Facts) -> None:
    needed = {Action.MERGE: "change", Action.START: "request"}.get(asked.action, "path")
    if needed == "path" and asked.action not in {Action.LIST, Action.READ, Action.WRITE, Action.DELETE}:
        return
    assert decide(policy(), replace(asked, **{needed: None})).effect is Effect.DENY


@pytest.mark.parametrize("name", [field.name for field in fields(Facts)])
def test_a_fact_that_is_left_out_is_a_construction_error(name: str) -> None:
    values = {field.name: getattr(FACTS, field.name) for field in fields(Facts) if field.name != name}
    with pytest.raises(TypeError):
        Facts(**values)


@given(any_facts)
def test_a_dead_lease_or_a_disabled_principal_never_gets_through(asked: Facts) -> None:
    assert decide(policy(), replace(asked, disabled=True)).effect is Effect.DENY
    for state in (LeaseState.REVOKED, LeaseState.EXPIRED, LeaseState.PENDING):
        assert decide(policy(), replace(asked, lease=WHOLE_TREE, lease_state=state)).effect is Effect.DENY


@given(any_facts)
def test_nobody_changes_a_protected_branch_but_by_merging(asked: Facts) -> None:
    for action in (Action.WRITE, Action.DELETE, Action.RESTORE):
        assert decide(policy(), replace(asked, action=action, protected=True)).effect is Effect.DENY


@given(any_facts, st.integers(0, 2**32))
def test_the_order_of_the_document_decides_nothing(asked: Facts, seed: int) -> None:
    document = yaml.safe_load(POLICY)
    chance = random.Random(seed)
    for section in ("grants", "guards"):
        chance.shuffle(document[section])
        for rule in document[section]:
            for key in ("actions", "paths"):
                chance.shuffle(rule.setdefault(key, ["**"]))
    shuffled = decide(policy(yaml.safe_dump(document)), asked)
    assert without_positions(shuffled) == without_positions(decide(policy(), asked))


def without_positions(decision: Decision) -> tuple[object, ...]:
    return decision.effect, decision.rule, decision.denial, decision.ask, decision.reason.split(" at ")[0]


RANK = {Effect.DENY: 0, Effect.GATE: 1, Effect.ALLOW: 2}


@given(any_facts, st.integers(0, 7))
def test_grants_only_widen_and_guards_only_tighten(asked: Facts, number: int) -> None:
    document = yaml.safe_load(POLICY)
    section = "grants" if number < 5 else "guards"
    if section == "grants" and asked.action is Action.START:
        return  # a grant's limits are an envelope: the tighter of two counts
    removed = document[section].pop(number % 5)
    without, complete = (RANK[decide(policy(text), replace(asked, gate=None)).effect] for text in (yaml.safe_dump(document), POLICY))
    if section == "grants":
        assert without <= complete
    elif removed["effect"] == "refuse":
        assert without >= complete
    elif without == RANK[Effect.ALLOW]:
        assert complete in {RANK[Effect.GATE], RANK[Effect.ALLOW]}


def test_the_same_facts_give_the_same_decision_under_any_hash_seed() -> None:
    outputs = {_decide_elsewhere(seed) for seed in ("0", "1", "12345")}
    assert len(outputs) == 1 and "Effect" in outputs.pop()


def _decide_elsewhere(seed: str) -> str:
    program = "from tests.trust.policy.test_decide import vector; print(vector())"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True, timeout=60).stdout


def vector() -> list[Decision]:
    """Decide every combination of a few facts, for comparison between processes."""
    combinations = itertools.product(
        Action, [b"src/a", b"x/id_rsa"], [frozenset[str](), frozenset({"owner", "reviewer"})], [None, WHOLE_TREE]
    )
    asked = [
        facts(action=action, path=path, roles=roles, lease=lease, change=ChangeFacts(paths=(path, b".nas/x"), deletes=3))
        for action, path, roles, lease in combinations
    ]
    return [decide(policy(), each) for each in asked]
