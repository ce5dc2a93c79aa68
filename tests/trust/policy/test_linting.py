from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.trust.policy.generated import compiled, documents
from trust.policy import compile_policy, default_policy
from trust.policy.diffing import compare_policies
from trust.policy.linting import Known, lint_policy
from trust.policy.reading import Severity

HEAD = "version: 1\nroles: {owner: [ana], reviewer: [bo]}\n"
WORKING = """grants:
  - {id: work, actions: [list, read, write, delete, propose, merge], limits: {ttl: 1h}}
  - {id: start, who: {roles: [reviewer]}, actions: [start]}
guards:
"""
ASK = "required_role: reviewer, deadline: 1h, fallback: reject, reason: r"


def found(text: str, known: Known | None = None) -> dict[str, str]:
    return {each.code: str(each) for each in lint_policy(compile_policy(HEAD + text, "p.yaml"), known)}


def test_the_default_policy_says_nothing_in_vain() -> None:
    assert lint_policy(compile_policy(default_policy(), "default.yaml")) == ()


def test_a_policy_that_works_says_nothing_in_vain() -> None:
    assert found(WORKING.replace("guards:\n", "")) == {}


@pytest.mark.parametrize(
    ("text", "code", "finding"),
    [
        (
            f"  - {{id: no, effect: gate, actions: [merge], when: {{files: {{at_least: 9, at_most: 3}}}}, {ASK}}}",
            "impossible-condition",
            "p.yaml:7:5: 'no' never applies: no files is at_least 9 and at_most 3",
        ),
        (
            f"  - {{id: no, effect: gate, actions: [merge], when: {{rule_of_two: [broken], origin: [internal]}}, {ASK}}}",
            "impossible-condition",
            "only external and sensitive together",
        ),
        (
            f"  - {{id: yes, effect: gate, actions: [merge], when: {{checks: [none, passed, failed, missing]}}, {ASK}}}",
            "idle-condition",
            "the condition on checks in 'yes' always holds",
        ),
        ("  - {id: git, effect: refuse, actions: [read], paths: ['a/.git/**'], reason: r}", "unreachable-path", "a tree has no .git"),
        (
            f"  - {{id: long, effect: refuse, actions: [read], paths: ['{'x' * 256}'], reason: r}}",
            "unreachable-path",
            "a name has at most 255 bytes",
        ),
        (
            "  - {id: twice, effect: refuse, actions: [read], paths: ['a/**', 'a/b'], reason: r}",
            "redundant-pattern",
            "'a/b' in 'twice' is covered by 'a/**'",
        ),
        (
            f"  - {{id: one, effect: gate, actions: [merge], paths: [a], {ASK}}}\n"
            f"  - {{id: two, effect: gate, actions: [merge], paths: [a], {ASK.replace('reviewer', 'owner')}}}",
            "contradicting-questions",
            "p.yaml:8:5: 'two' asks exactly when 'one' does and names another role",
        ),
        (
            "  - {id: all, effect: refuse, actions: [read], paths: ['a/**'], reason: r}\n"
            f"  - {{id: some, effect: gate, actions: [read], paths: ['a/b'], {ASK}}}",
            "shadowed-rule",
            "p.yaml:8:5: guard 'some' never decides",
        ),
        (
            "  - {id: all, effect: refuse, actions: [read], paths: ['a/**'], reason: r}\n"
            "  - {id: some, effect: refuse, actions: [read], paths: ['a/b'], reason: r}",
            "redundant-rule",
            "guard 'some' changes nothing: others say the same together",
        ),
        ("  - {id: out, effect: refuse, actions: [egress], reason: r}", "guard-without-grant", "about egress, which no grant gives"),
        (
            f"  - {{id: many, effect: gate, actions: [merge], approvals: 3, {ASK}}}",
            "too-few-approvers",
            "'many' wants 3 people and 2 could answer",
        ),
    ],
)
def test_what_a_guard_says_in_vain_is_found_where_it_stands(text: str, code: str, finding: str) -> None:
    assert finding in found(WORKING + text).get(code, ""), found(WORKING + text)


@pytest.mark.parametrize(
    ("text", "code", "finding"),
    [
        ("grants: []", "action-without-grant", "no grant gives list, read, write, propose, merge"),
        ("grants:\n  - {id: w, actions: [write]}", "endless-lease", "'w' gives agents leases for as long as they ask"),
        ("grants:\n  - {id: s, actions: [start], limits: {ttl: 1h}}", "idle-limits", "'s' limits leases"),
        ("grants:\n  - {id: m, actions: [merge], when: {checks: [passed]}}", "no-such-check", "'m' wants the result of a check"),
        ("grants:\n  - {id: m, actions: [merge]}", "unused-role", "p.yaml:2:1: no rule names the role 'reviewer'"),
        (
            "grants:\n  - {id: a, actions: [read]}\n  - {id: b, actions: [read]}",
            "redundant-rule",
            "grant 'b' changes nothing: 'a' says the same",
        ),
        ("labels:\n  - {paths: [a], origin: internal}", "idle-label", "the one that everything has"),
        (
            "labels:\n  - {paths: [a], origin: external}\n  - {paths: ['**'], origin: external}",
            "idle-label",
            "p.yaml:4:5: other labels say the same",
        ),
        ("rule_of_two: {effect: 'off'}\nlabels:\n  - {paths: [a], origin: external}", "idle-label", "no rule looks at external/internal"),
    ],
)
def test_what_else_is_said_in_vain_is_found_too(text: str, code: str, finding: str) -> None:
    assert finding in found(text).get(code, ""), found(text)


def test_a_role_without_people_leaves_the_question_to_the_owner() -> None:
    text = WORKING + f"  - {{id: ask, effect: gate, actions: [merge], paths: [a], {ASK}}}"
    empty = (HEAD + text).replace("reviewer: [bo]", "reviewer: []")
    assert [each.code for each in lint_policy(compile_policy(empty, "p"))] == ["role-without-people"]
    standing = Known({"ana": frozenset(), "cy": frozenset({"reviewer"})})
    assert lint_policy(compile_policy(empty, "p"), standing) == ()


def test_names_that_an_installation_does_not_know_are_found() -> None:
    known = Known({"ana": frozenset(), "svc:build": frozenset()})
    text = "grants:\n  - {id: r, who: {principals: ['svc:*', 'bot:*'], on_behalf_of: [ana, cy]}, actions: [read]}\n"
    messages = [each.message for each in lint_policy(compile_policy(HEAD + text, "p"), known) if each.code == "unknown-principal"]
    assert messages == [
        "the role 'reviewer' names bo, who is not known",
        "'r' names bot:*, which is nobody",
        "'r' names cy, which is nobody",
    ]


def test_what_contradicts_itself_is_an_error_and_the_rest_a_warning() -> None:
    errors = {"impossible-condition", "contradicting-questions", "too-few-approvers"}
    text = WORKING + f"  - {{id: no, effect: gate, actions: [merge], when: {{files: {{at_least: 9, at_most: 3}}}}, {ASK}}}"
    severities = {each.code: each.severity for each in lint_policy(compile_policy(HEAD + text, "p"))}
    assert severities == {"impossible-condition": Severity.ERROR}
    assert all((each.severity is Severity.ERROR) == (each.code in errors) for each in lint_policy(compile_policy(HEAD + "grants: []", "p")))


@settings(max_examples=25, deadline=None)
@given(documents)
def test_a_rule_that_is_called_vain_can_be_left_out(document: dict[str, Any]) -> None:
    policy = compiled(document)
    vain = {each.message.split("'")[1] for each in lint_policy(policy) if each.code in {"shadowed-rule", "redundant-rule"}}
    for rule in vain:
        less = {**document, **{section: [each for each in document[section] if each["id"] != rule] for section in ("grants", "guards")}}
        assert not compare_policies(policy, compiled(less)).decisions, rule
