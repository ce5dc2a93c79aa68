from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import trust.policy
from trust.errors import PolicyInvalid, QuantityInvalid
from trust.model import Action, Ask, BudgetKind
from trust.policy import check_policy, compile_policy, default_policy, empty_policy, parse_duration, parse_size, policy_schema

HEAD = "version: 1\nroles: {owner: [ana], reviewer: [bo]}\n"


def findings(text: str) -> list[str]:
    return [str(diagnostic) for diagnostic in check_policy(text, "p.yaml")]


def test_the_published_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(policy_schema())
    assert json.loads((Path(trust.policy.__file__).parent / "schema.json").read_text()) == policy_schema()


def test_the_default_policy_compiles() -> None:
    assert check_policy(default_policy(), "default.yaml") == ()


def test_a_policy_compiles_to_rules_with_their_positions() -> None:
    policy = compile_policy(
        HEAD
        + """
grants:
  - id: work
    who: {kinds: [agent], principals: ["svc:*"], roles: [reviewer], on_behalf_of: [ana]}
    actions: [read, write]
    paths: [src/**]
    limits: {ttl: 2h, budgets: {bytes_written: 1GiB, commits: 7}}
guards:
  - {id: ask, effect: gate, actions: [merge], when: {files: {at_least: 3, at_most: 9}, checks: [failed]},
     required_role: reviewer, deadline: 30min, fallback: withdraw, reason: why}
checks:
  - {id: tests, run: [make, test], paths: ["src/**"], timeout: 5min, required: false}
""",
        "p.yaml",
    )
    grant, guard, check = policy.grants[0], policy.guards[0], policy.checks[0]
    assert (grant.id, str(grant.position)) == ("work", "p.yaml:5:5")
    assert grant.actions == {Action.READ, Action.WRITE}
    assert (grant.limits.ttl, grant.limits.budgets) == (7200, {BudgetKind.BYTES_WRITTEN: 1 << 30, BudgetKind.COMMITS: 7})
    assert guard.ask == Ask("reviewer", 1800, "withdraw")
    assert sorted(map(str, guard.when)) == ["checks in [failed]", "files at_least 3", "files at_most 9"]
    assert (check.run, check.timeout, check.required) == (("make", "test"), 300, False)
    assert policy.checks_for((b"docs/x",)) == () and policy.checks_for((b"docs/x", b"src/y")) == (check,)
    assert policy.roles_of("bo") == {"reviewer"}


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "p.yaml:1:1: expected a mapping, found nothing"),
        ("[]", "expected a mapping, found a list"),
        ("version: 2\nroles: {owner: [a]}", "p.yaml:1:1: expected 1, found 2"),
        ("version: 1", "'roles' is missing"),
        ("version: 1\nroles: {}", "p.yaml:2:1: 'owner' is missing"),
        ("version: 1\nroles: {owner: []}", "p.yaml:2:9: this must not be empty"),
        (HEAD + "grant: []", "p.yaml:3:1: unknown key 'grant' (did you mean 'grants'?)"),
        (HEAD + "grants:\n  - {id: a, actoins: [read], actions: [read]}", "p.yaml:4:13: unknown key 'actoins' (did you mean 'actions'?)"),
        (HEAD + "grants:\n  - {id: a, actions: [raed]}", "p.yaml:4:23: 'raed' is not known here (did you mean 'read'?)"),
        (HEAD + "grants:\n  - {id: a, actions: read}", "p.yaml:4:13: expected a list, found 'read'"),
        (HEAD + "grants:\n  - {id: A b, actions: [read]}", "is no id"),
        (HEAD + "grants:\n  - {actions: [read]}", "p.yaml:4:5: 'id' is missing"),
        (HEAD + "grants:\n  - {id: a, actions: [read], paths: [/src]}", "p.yaml:4:38: '/src' is not a pattern"),
        (HEAD + "grants:\n  - {id: a, actions: [read], paths: [src/../x]}", "is not a pattern"),
        (HEAD + "grants:\n  - {id: a, actions: [read], who: {roles: [reviewr]}}", "there is no role 'reviewr' (did you mean 'reviewer'?)"),
        (HEAD + "grants:\n  - {id: a, actions: [read], who: {principals: [a/b]}}", "is a path, not the name of a principal"),
        (HEAD + "grants:\n  - {id: a, actions: [read], when: {files: {at_most: 1}}}", "only merge has one"),
        (HEAD + "grants:\n  - {id: a, actions: [merge], when: {files: {below: 1}}}", "unknown key 'below'"),
        (HEAD + "grants:\n  - {id: a, actions: [merge], when: {size: {at_most: 1}}}", "unknown key 'size'"),
        (HEAD + "grants:\n  - {id: a, actions: [start], limits: {ttl: 2 weeks}}", "'2 weeks' cannot be read"),
        (HEAD + "grants:\n  - {id: a, actions: [start], limits: {budgets: {bytes_written: -1}}}", "out of bounds"),
        (HEAD + "grants:\n  - {id: a, actions: [egress], limits: {destinations: [/x]}}", "'/x' is not a pattern"),
        (HEAD + "grants:\n  - {id: a, actions: [read], limits: {destinations: [x]}}", "only egress has a destination"),
        (HEAD + "grants:\n  - {id: a, actions: [read]}\nguards:\n  - {id: a, effect: refuse, actions: [read], reason: r}", "used twice"),
        (HEAD + "guards:\n  - {id: a, effect: gate, actions: [merge], reason: r}", "'required_role' is missing"),
        (
            HEAD + "guards:\n  - {id: a, effect: gate, actions: [merge], reason: r, required_role: owner, deadline: 1h, fallback: approve}",
            "'approve' is not known here",
        ),
        (
            HEAD + "guards:\n  - {id: a, effect: gate, actions: [merge], reason: r, required_role: owner, deadline: 0, fallback: reject}",
            "nobody can answer in no time",
        ),
        (HEAD + "guards:\n  - {id: a, effect: allow, actions: [read], reason: r}", "'allow' is not known here"),
        (HEAD + "guards:\n  - {id: a, effect: refuse, actions: [read]}", "'reason' is missing"),
        (HEAD + "checks:\n  - {id: a, run: make}", "expected a list, found 'make'"),
        (HEAD + "checks:\n  - {id: a, run: [x]}\n  - {id: a, run: [y]}", "p.yaml:5:6: the id 'a' is used twice (first at p.yaml:4:6)"),
    ],
)
def test_a_mistake_is_found_where_it_stands(text: str, finding: str) -> None:
    assert any(finding in each for each in findings(text)), findings(text)


def test_all_mistakes_are_found_at_once() -> None:
    found = findings(HEAD + "grants:\n  - {id: a, actions: [raed]}\n  - {id: b, actoins: []}\n")
    assert len(found) == 3
    with pytest.raises(PolicyInvalid) as raised:
        compile_policy(HEAD + "grants:\n  - {id: a, actions: [raed]}\n", "p.yaml")
    assert len(raised.value.diagnostics) == 1


def test_a_policy_answers_for_whole_directories() -> None:
    policy = compile_policy(
        HEAD
        + """
grants: [{id: g, actions: [list], paths: ["src/a/**"]}]
guards: [{id: r, effect: refuse, actions: [read], paths: ["**/.aws/*"], reason: no}]
""",
        "p.yaml",
    )
    assert policy.may_grant_below(Action.LIST, b"src") and not policy.may_grant_below(Action.LIST, b"docs")
    assert not policy.may_grant_below(Action.READ, b"src")
    assert policy.uniform_below(Action.LIST, b"src/a") and not policy.uniform_below(Action.LIST, b"src")
    assert policy.uniform_below(Action.WRITE, b"src") and not policy.uniform_below(Action.READ, b"src")
    assert policy.same_below(b"docs", b"lib/x") and not policy.same_below(b"docs/.aws", b"docs") and not policy.same_below(b"src", b"docs")


def test_the_empty_policy_has_no_rules_and_no_roles() -> None:
    policy = empty_policy("nowhere")
    assert policy.grants == policy.guards == policy.checks == () and not policy.roles


@pytest.mark.parametrize(("text", "size"), [(0, 0), (4096, 4096), ("20MiB", 20 << 20), ("5 GB", 5 * 10**9), ("7", 7), ("1TiB", 1 << 40)])
def test_sizes_are_read(text: int | str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [(90, 90), ("300s", 300), ("30min", 1800), ("24h", 86400), ("7d", 604800)])
def test_durations_are_read(text: int | str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1.5GiB", "1 mib", "10m", "1e9", "9" * 30, "٣", "5 M i B"])
def test_a_quantity_that_could_mean_something_else_is_refused(text: str) -> None:
    for parse in (parse_size, parse_duration):
        with pytest.raises(QuantityInvalid):
            parse(text)
