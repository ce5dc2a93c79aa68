"""The rules of questions: who answers, what an answer is about, when it is too late, what it releases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.trust.samples import WHOLE_TREE
from trust.errors import AlreadyAnswered, GateClosed, GateMismatch, NotEntitled, ScopeInvalid, TrustError
from trust.gates import (
    Question,
    acknowledge,
    act_digest,
    answer,
    check_answer,
    close,
    covering,
    exclude,
    expire,
    is_live,
    make_bypass,
    make_gate,
    releases,
    supersede,
    withdraw,
)
from trust.model import (
    Ask,
    Bypass,
    Digest,
    Gate,
    GateId,
    GatePhase,
    GateState,
    Identity,
    Lease,
    LeaseId,
    Principal,
    PrincipalKind,
    PrincipalName,
    RunId,
)
from trust.policy.decide import POLICY_CHANGE

ACT = {"verb": "merge", "head": "abc", "policy": "h1"}
QUESTION = Question("proposal:p1", ACT, {"what": "merge"}, Ask("reviewer", 90, use_within=60), "big", "coder", run="r1", on_behalf_of="ana")
NOW = 10
GATE = make_gate(GateId("g1"), QUESTION, ["coder"], NOW)
LEASE = Lease(LeaseId("l1"), RunId("r1"), PrincipalName("coder"), PrincipalName("ana"), WHOLE_TREE, 0)


def person(name: str, *roles: str, kind: PrincipalKind = PrincipalKind.HUMAN) -> Identity:
    return Identity(Principal(PrincipalName(name), kind, 0), frozenset(roles))


BO, CY, ANA = person("bo", "reviewer"), person("cy", "reviewer"), person("ana", "owner")


def approve(gate: Gate, by: Identity = BO, now: int = 50) -> Gate:
    return answer(gate, gate.digest, True, by, "fine", now)


# who, and about what


def test_who_has_the_role_answers_in_time_and_the_owner_answers_everything() -> None:
    assert approve(GATE, BO, 99).state is GateState.APPROVED
    assert answer(GATE, GATE.digest, False, ANA, "no", NOW).state is GateState.REJECTED


@pytest.mark.parametrize(
    ("by", "now", "error"),
    [
        (person("bo", "intern"), 50, NotEntitled),
        (replace(BO, lease=LEASE), 50, NotEntitled),
        (person("agent", "reviewer", kind=PrincipalKind.AGENT), 50, NotEntitled),
        (person("coder", "reviewer", "owner"), 50, NotEntitled),
        (BO, 100, GateClosed),
        (BO, 101, GateClosed),
    ],
)
def test_other_answers_do_not_count(by: Identity, now: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        approve(GATE, by, now)


def test_an_answer_about_another_card_does_not_count() -> None:
    other = make_gate(GateId("g2"), replace(QUESTION, card={"what": "merge", "files": 1}), [], NOW)
    assert other.act == GATE.act
    for digest in (other.digest, Digest(""), GATE.act):
        with pytest.raises(GateMismatch):
            answer(GATE, digest, True, BO, "", 50)


@pytest.mark.parametrize(
    "change",
    [
        {"act": ACT | {"head": "abd"}},
        {"act": ACT | {"policy": "h2"}},
        {"card": {"what": "another"}},
        {"subject": "proposal:p2"},
        {"rule": "small"},
        {"run": "r2"},
        {"standing": True},
        {"ask": Ask("reviewer", 90, approvals=2, use_within=60)},
        {"ask": Ask("owner", 90, use_within=60)},
        {"ask": Ask("reviewer", 90, independent=True, use_within=60)},
    ],
)
def test_everything_a_person_could_have_judged_by_is_in_the_digest(change: dict[str, Any]) -> None:
    assert make_gate(GateId("g1"), replace(QUESTION, **change), [], NOW).digest != GATE.digest


@pytest.mark.parametrize("state", [state for state in GateState if state is not GateState.PENDING])
def test_a_gate_that_ended_takes_no_answer(state: GateState) -> None:
    with pytest.raises(GateClosed, match=state.value):
        check_answer(replace(GATE, state=state, phase=GatePhase.DECIDED), GATE.digest, BO, 50)


@pytest.mark.parametrize(
    "ask",
    [
        Ask("", 99),
        Ask("owner", 0),
        Ask("owner", -1),
        Ask("owner", 9, "approve"),
        Ask("owner", 9, ""),
        Ask("owner", 9, approvals=0),
        Ask("owner", 9, approvals=17),
        Ask("owner", 9, use_within=0),
    ],
)
def test_a_question_that_nobody_can_answer_or_silence_would_approve_is_not_asked(ask: Ask) -> None:
    with pytest.raises(ScopeInvalid):
        make_gate(GateId("g1"), replace(QUESTION, ask=ask), [], NOW)


# several people, and one's own questions

TWO = make_gate(GateId("g1"), replace(QUESTION, ask=Ask("reviewer", 90, approvals=2)), ["coder"], NOW)


def test_two_approvals_are_of_two_people() -> None:
    once = approve(TWO)
    assert (once.state, once.phase, [given.by for given in once.answers]) == (GateState.PENDING, GatePhase.PENDING, ["bo"])
    with pytest.raises(AlreadyAnswered, match="1 more has to"):
        approve(once, BO, 51)
    assert not releases(once, 52)
    twice = approve(once, CY, 52)
    assert (twice.state, twice.answered_by, twice.usable_until) == (GateState.APPROVED, "bo, cy", 52 + 86400)


def test_one_rejection_is_enough_also_by_who_approved_before() -> None:
    for by in (BO, CY):
        rejected = answer(approve(TWO), TWO.digest, False, by, "no", 51)
        assert (rejected.state, rejected.answered_by) == (GateState.REJECTED, by.principal.name)


def test_who_asks_and_whom_it_was_handed_to_never_answer() -> None:
    asked = replace(QUESTION, actors=("helper", "other"))
    assert exclude(asked, ["ana", "bo"]) == {"coder", "helper", "other"}
    assert exclude(replace(asked, ask=Ask("reviewer", 9, independent=True)), ["ana", "bo"]) == {"coder", "helper", "other", "ana"}


def test_asking_for_oneself_is_answered_by_others_where_there_are_others() -> None:
    own = replace(QUESTION, asked_by="ana", on_behalf_of="ana")
    assert exclude(own, ["ana", "bo"]) == {"ana"}
    assert exclude(own, ["ana"]) == frozenset()
    assert exclude(replace(own, ask=Ask("owner", 9, approvals=2)), ["ana", "bo"]) == frozenset()
    assert exclude(replace(own, ask=Ask("owner", 9, independent=True)), ["ana"]) == {"ana"}


# time to decide, time to use


def test_the_deadline_is_the_first_moment_that_is_too_late() -> None:
    assert expire(GATE, 99) is None
    expired = expire(GATE, 100)
    assert expired is not None and (expired.state, expired.phase) == (GateState.EXPIRED, GatePhase.DECIDED)


def test_an_approval_lapses_and_releases_nothing_from_then_on() -> None:
    gate = approve(GATE, now=50)
    assert gate.usable_until == 110 and releases(gate, 109) and not releases(gate, 110)
    assert expire(gate, 109) is None
    lapsed = expire(gate, 110)
    assert lapsed is not None and lapsed.state is GateState.LAPSED
    for late in (gate, lapsed):
        with pytest.raises(GateClosed):
            acknowledge(late, GATE.act, 110)
    assert expire(acknowledge(gate, GATE.act, 109), 110) is None, "what began in time goes on"


# what is released


def test_an_approval_releases_exactly_its_act_and_once() -> None:
    gate = approve(GATE)
    with pytest.raises(GateMismatch):
        acknowledge(gate, act_digest("proposal:p1", ACT | {"head": "abd"}), 51)
    used = acknowledge(gate, GATE.act, 51)
    assert (used.phase, used.acknowledged) == (GatePhase.ACKNOWLEDGED, 51)
    with pytest.raises(GateClosed, match="approved by bo and used"):
        acknowledge(used, GATE.act, 52)
    closed = close(used, "merged", 53)
    assert (closed.phase, closed.closed, closed.outcome, closed.state) == (GatePhase.CLOSED, 53, "merged", GateState.APPROVED)
    assert close(closed, "something else", 54) == closed


def test_a_standing_approval_counts_until_its_time_is_over() -> None:
    gate = approve(make_gate(GateId("g1"), replace(QUESTION, standing=True), [], NOW), now=50)
    used = close(acknowledge(gate, gate.act, 51), "read", 52)
    assert acknowledge(used, gate.act, 60) == used and releases(used, 109)
    with pytest.raises(GateClosed):
        acknowledge(used, gate.act, 110)


@pytest.mark.parametrize("taken_back", [lambda gate: withdraw(gate, "sorry", 60), lambda gate: supersede(gate, "commit:c9", 60)])
def test_a_question_is_taken_back_until_its_act_begins(taken_back: Any) -> None:
    for gate in (GATE, approve(GATE)):
        ended = taken_back(gate)
        assert ended.phase is GatePhase.DECIDED and not releases(ended, 60)
        with pytest.raises(GateClosed, match=r"superseded by commit:c9|withdrawn"):
            acknowledge(ended, GATE.act, 60)
    for gate in (acknowledge(approve(GATE), GATE.act, 55), answer(GATE, GATE.digest, False, BO, "", 50)):
        with pytest.raises(GateClosed):
            taken_back(gate)


def test_what_waits_is_not_closed() -> None:
    with pytest.raises(GateClosed):
        close(GATE, "done", 50)


def test_the_act_is_the_same_whoever_asks_and_whatever_else_is_shown() -> None:
    other = make_gate(GateId("g2"), replace(QUESTION, subject="proposal:p2", run="r2", asked_by="bob", card={}), [], 99)
    assert other.act == GATE.act == act_digest("proposal:p7", ACT)
    assert act_digest("egress:p1", ACT) != GATE.act


def test_questions_are_alike_by_what_they_say_they_are_and_by_rule() -> None:
    alike = {"diff": "d1"}
    one, two, ruled = (
        make_gate(GateId("g1"), replace(QUESTION, act={"head": head}, alike=alike, rule=rule), [], NOW).alike
        for head, rule in (("a", "big"), ("b", "big"), ("c", "small"))
    )
    assert one == two != ruled
    assert GATE.alike != make_gate(GateId("g1"), replace(QUESTION, act={"head": "b"}), [], NOW).alike


# bypasses


def test_a_bypass_is_opened_by_an_owner_in_person_with_a_reason_for_a_day_at_most() -> None:
    bypass = make_bypass(GateId("b1"), "big", "h1", ANA, " moving house ", 60, 100)
    assert (bypass.reason, bypass.expires) == ("moving house", 160)
    for by, reason, seconds in (
        (BO, "why", 60),
        (replace(ANA, lease=LEASE), "why", 60),
        (person("bot", "owner", kind=PrincipalKind.AGENT), "why", 60),
        (ANA, "  ", 60),
        (ANA, "why", 0),
        (ANA, "why", 86401),
    ):
        with pytest.raises((NotEntitled, ScopeInvalid)):
            make_bypass(GateId("b1"), "big", "h1", by, reason, seconds, 100)


def test_a_bypass_covers_one_rule_of_one_policy_for_its_time() -> None:
    big, small = (make_bypass(GateId(f"b-{rule}"), rule, "h1", ANA, "why", 60, 100) for rule in ("big", "small"))
    assert is_live(big, "h1", 159) and not is_live(big, "h1", 160) and not is_live(big, "h1", 99)
    assert not is_live(replace(big, ended=120), "h1", 130)
    assert covering([big, small], ("big", "small"), "h1", 120) == (big, small)
    assert covering([big], ("big",), "h1", 120) == (big,)
    assert covering([big], ("big", "small"), "h1", 120) == ()
    assert covering([big], ("big",), "h2", 120) == ()
    assert covering([big], (), "h1", 120) == ()


def test_a_change_of_the_policy_is_never_bypassed() -> None:
    with pytest.raises(NotEntitled):
        make_bypass(GateId("b1"), POLICY_CHANGE, "h1", ANA, "why", 60, 100)
    forged = Bypass(GateId("b1"), POLICY_CHANGE, "h1", "ana", "why", 100, 160)
    big = make_bypass(GateId("b2"), "big", "h1", ANA, "why", 60, 100)
    assert covering([forged, big], ("big", POLICY_CHANGE), "h1", 120) == ()


def test_every_refusal_is_told_in_words() -> None:
    for act in (lambda: approve(GATE, person("x")), lambda: acknowledge(GATE, GATE.act, 50), lambda: close(GATE, "", 1)):
        with pytest.raises(TrustError) as caught:
            act()
        assert caught.value.why
