"""What the policy says about labels, taint and outward acts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trust.samples import WHOLE_TREE, facts, merge
from trust.errors import PolicyInvalid
from trust.labels import DEFAULT, WORST, Label, Origin, Sensitivity
from trust.model import Action, Denial, Effect, Facts, Scope
from trust.policy import compile_policy, decide, default_policy
from trust.policy.rules import CompiledPolicy

EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)
SENSITIVE = Label(Origin.INTERNAL, Sensitivity.SENSITIVE)
BASE = """
version: 1
roles: {owner: [ana], reviewer: [bo]}
grants:
  - {id: work, actions: [list, read, write, delete, propose, egress]}
  - {id: merges, actions: [merge]}
  - {id: starts, who: {on_behalf_of: [ana]}, actions: [start]}
"""
OUTWARD = replace(WHOLE_TREE, actions=WHOLE_TREE.actions | {Action.EGRESS})


def policy(more: str = "") -> CompiledPolicy:
    return compile_policy(BASE + more, "policy.yaml")


def reading(**changes: object) -> Facts:
    return facts(**({"lease": OUTWARD, "outward": True} | changes))


def sending(destination: str = "crm", **changes: object) -> Facts:
    return facts(**({"action": Action.EGRESS, "path": None, "lease": OUTWARD, "outward": True, "destination": destination} | changes))


@pytest.mark.parametrize(
    ("asked", "effect"),
    [
        (reading(label=SENSITIVE), Effect.ALLOW),
        (reading(label=SENSITIVE, taint=EXTERNAL), Effect.GATE),
        (reading(label=EXTERNAL, taint=SENSITIVE), Effect.GATE),
        (reading(label=SENSITIVE, taint=EXTERNAL, outward=False), Effect.ALLOW),
        (reading(label=DEFAULT, taint=WORST), Effect.ALLOW),
        (reading(label=SENSITIVE, taint=WORST), Effect.ALLOW),
        (merge(b"src/a", taint=EXTERNAL), Effect.ALLOW),
        (merge(b"src/a", taint=EXTERNAL, label=SENSITIVE), Effect.GATE),
        (sending(taint=EXTERNAL), Effect.ALLOW),
        (sending(taint=WORST), Effect.GATE),
        (sending(taint=EXTERNAL, label=SENSITIVE), Effect.GATE),
        (facts(action=Action.WRITE, taint=WORST, outward=True), Effect.ALLOW),
    ],
)
def test_a_run_combines_two_and_is_asked_for_the_third(asked: Facts, effect: Effect) -> None:
    decision = decide(policy(), asked)
    assert decision.effect is effect
    assert (decision.rule == "rule-of-two") == (effect is Effect.GATE)


def test_the_policy_can_refuse_instead_or_not_look() -> None:
    asked = sending(taint=WORST)
    refused = decide(policy("rule_of_two: {effect: refuse}"), asked)
    assert (refused.effect, refused.denial, refused.rule) == (Effect.DENY, Denial.LABEL, "rule-of-two") and refused.position.line
    assert decide(policy("rule_of_two: {effect: 'off'}"), asked).effect is Effect.ALLOW


def test_the_policy_says_who_is_asked() -> None:
    section = "rule_of_two: {effect: gate, required_role: reviewer, deadline: 1h, fallback: withdraw}"
    ask = decide(policy(section), sending(taint=WORST)).ask
    assert ask is not None and (ask.required_role, ask.deadline, ask.fallback) == ("reviewer", 3600, "withdraw")
    with pytest.raises(PolicyInvalid):
        policy("rule_of_two: {effect: gate, required_role: reviewer}")


def test_an_approval_answers_the_rule_and_replaces_no_grant() -> None:
    asked = reading(label=SENSITIVE, taint=EXTERNAL)
    assert decide(policy(), replace(asked, gate="g1")).effect is Effect.ALLOW
    narrow = compile_policy(BASE.replace("[list, read, write, delete, propose, egress]", "[list]"), "policy.yaml")
    assert decide(narrow, asked).effect is Effect.DENY, "people are not asked about what they could not allow"
    assert decide(narrow, replace(asked, gate="g1")).effect is Effect.DENY


def test_a_lease_that_could_do_all_three_is_asked_about() -> None:
    start = facts(action=Action.START, path=None, lease=None, lease_state=None, request=OUTWARD)
    assert decide(policy(), replace(start, label=SENSITIVE, outward=True)).effect is Effect.ALLOW
    asked = decide(policy(), replace(start, label=WORST, outward=True))
    assert (asked.effect, asked.rule) == (Effect.GATE, "rule-of-two")
    assert decide(policy(), replace(start, label=WORST, outward=True, gate="g1")).effect is Effect.ALLOW


@pytest.mark.parametrize(
    ("ceiling", "label", "allowed"),
    [
        (None, WORST, True),
        (DEFAULT, DEFAULT, True),
        (DEFAULT, EXTERNAL, False),
        (DEFAULT, SENSITIVE, False),
        (SENSITIVE, SENSITIVE, True),
        (SENSITIVE, EXTERNAL, False),
    ],
)
def test_a_lease_reads_up_to_its_ceiling(ceiling: Label | None, label: Label, allowed: bool) -> None:
    decision = decide(policy(), facts(lease=replace(WHOLE_TREE, ceiling=ceiling), label=label))
    assert (decision.effect is Effect.ALLOW) == allowed
    assert allowed or decision.denial is Denial.LABEL


UNTRUSTED_EGRESS = """
guards:
  - id: untrusted-egress
    effect: refuse
    actions: [egress]
    when: {origin: [external], destination: [undeclared]}
    reason: "no"
"""


def test_a_destination_that_the_lease_names_needs_no_question() -> None:
    rules = policy(UNTRUSTED_EGRESS)
    named = replace(OUTWARD, destinations=("cr*",))
    assert decide(rules, sending("crm", taint=EXTERNAL)).effect is Effect.DENY
    assert decide(rules, sending("crm", taint=EXTERNAL, lease=named)).effect is Effect.ALLOW
    assert decide(rules, sending("mail", taint=EXTERNAL, lease=named)).effect is Effect.DENY
    assert decide(rules, sending("mail")).effect is Effect.ALLOW


def test_an_outward_act_without_a_destination_is_denied() -> None:
    assert decide(policy(), sending("")).rule == "facts-incomplete"


@pytest.mark.parametrize(
    "rule",
    [
        "{id: x, effect: refuse, actions: [read], when: {destination: [declared]}, reason: no}",
        "{id: x, effect: refuse, actions: [read], when: {stale_reads: {at_least: 1}}, reason: no}",
        "{id: x, effect: refuse, actions: [administer], when: {origin: [external]}, reason: no}",
        "{id: x, effect: refuse, actions: [read], when: {origin: [strange]}, reason: no}",
    ],
)
def test_a_condition_that_makes_no_sense_for_an_action_does_not_compile(rule: str) -> None:
    with pytest.raises(PolicyInvalid):
        policy(f"guards:\n  - {rule}\n")


def test_stale_reads_can_ask_for_another_run() -> None:
    rules = policy("guards:\n  - {id: again, effect: refuse, actions: [merge], when: {stale_reads: {at_least: 1}}, reason: run again}\n")
    assert decide(rules, merge(b"a")).effect is Effect.ALLOW
    assert decide(rules, merge(b"a", stale_reads=1)).rule == "again"


def test_what_is_sensitive_can_be_kept_from_public_paths() -> None:
    about = "actions: [write, merge], paths: ['site/**'], when: {sensitivity: [sensitive]}"
    rules = policy(f"guards:\n  - {{id: leak, effect: refuse, {about}, reason: no}}\n")
    assert decide(rules, merge(b"site/x", taint=SENSITIVE)).rule == "leak"
    assert decide(rules, merge(b"src/x", taint=SENSITIVE)).effect is Effect.ALLOW
    assert decide(rules, facts(action=Action.WRITE, path=b"site/x", taint=SENSITIVE)).rule == "leak"


def test_the_shipped_policy_asks_about_instructions_and_sending_on_the_word_of_strangers() -> None:
    shipped = compile_policy(default_policy(), "policy.yaml")
    assert decide(shipped, merge(b"src/a.py", taint=EXTERNAL)).effect is Effect.ALLOW
    assert decide(shipped, merge(b"docs/AGENTS.md", taint=EXTERNAL)).rule == "untrusted-instructions-ask"
    assert decide(shipped, merge(b"docs/AGENTS.md")).effect is Effect.ALLOW
    assert shipped.label_of(b"inbox/mail.txt") == EXTERNAL and shipped.label_of(b"secrets/key") == SENSITIVE
    assert shipped.label_of(b"src/inbox.py") == DEFAULT
    scope = Scope(("**",), OUTWARD.actions, 0, 2_000)
    sent = sending(taint=EXTERNAL, lease=scope)
    assert decide(shipped, sent).rule == "untrusted-egress-asks"


labels = st.builds(Label, st.sampled_from(Origin), st.sampled_from(Sensitivity))
ORDER = {Effect.ALLOW: 0, Effect.GATE: 1, Effect.DENY: 2}


@given(labels, labels, labels, st.booleans(), st.sampled_from(["read", "merge", "egress"]))
def test_more_taint_never_allows_more(taint: Label, label: Label, more: Label, outward: bool, act: str) -> None:
    asked = {"read": reading(outward=outward), "merge": merge(b"site/x"), "egress": sending()}[act]
    rules = compile_policy(default_policy(), "policy.yaml")
    asked = replace(asked, taint=taint, label=label)
    worse = replace(asked, taint=Label(max(taint.origin, more.origin), max(taint.sensitivity, more.sensitivity)))
    if act != "read":  # a read that adds nothing is let through: what it would add was allowed before
        assert ORDER[decide(rules, worse).effect] >= ORDER[decide(rules, asked).effect]
