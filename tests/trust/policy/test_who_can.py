from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trust.policy.generated import LEASED, NAMES, PATHS, ROLES, compiled, documents, labels
from trust.model import LEASABLE, Action, Effect, Facts, LeaseState, PrincipalKind, PrincipalName, Scope
from trust.policy import CompiledPolicy, compile_policy, decide, default_policy, envelope
from trust.policy.who_can import Question, Subject, facts_of, who_can

scopes = st.builds(
    Scope,
    paths=st.sampled_from([("**",), ("src/**",), ("docs/*",)]),
    actions=st.frozensets(st.sampled_from(LEASED)),
    not_before=st.integers(0, 6),
    expires=st.integers(4, 9000),
)
subjects = st.builds(
    Subject,
    principal=st.sampled_from(NAMES).map(PrincipalName),
    kind=st.sampled_from(list(PrincipalKind)),
    roles=st.frozensets(st.sampled_from(ROLES)),
    on_behalf_of=st.sampled_from(["", *NAMES]).map(PrincipalName),
    lease=st.none() | scopes,
    taint=labels,
    disabled=st.sampled_from([False, False, False, True]),
)
questions = st.builds(
    Question,
    action=st.sampled_from(list(Action)),
    now=st.just(5),
    path=st.sampled_from(PATHS),
    label=labels,
    destination=st.just("mail"),
    protected=st.booleans(),
)


def may(policy: CompiledPolicy, subject: Subject, question: Question) -> Effect:
    """Decide without the code under test, fact by fact."""
    merges, starts = question.action is Action.MERGE, question.action is Action.START
    asked = facts_of(subject, question)
    assert asked.path == (None if merges or starts else question.path)
    assert asked.change is None or asked.change.paths == (question.path,)
    assert (asked.taint, asked.label, asked.roles, asked.lease) == (subject.taint, question.label, subject.roles, subject.lease)
    return decide(policy, asked).effect


@settings(max_examples=80, deadline=None)
@given(documents, st.lists(subjects, max_size=5), questions)
def test_the_answers_are_those_of_asking_about_each(document: dict[str, Any], everybody: list[Subject], question: Question) -> None:
    policy = compiled(document)
    answers = who_can(policy, everybody, question)
    assert [answer.subject for answer in answers] == everybody
    assert [answer.decision.effect for answer in answers] == [may(policy, subject, question) for subject in everybody]


@settings(max_examples=80, deadline=None)
@given(documents, st.lists(subjects, min_size=1, max_size=5), questions)
def test_what_could_be_obtained_is_what_a_lease_for_it_would_allow(
    document: dict[str, Any], everybody: list[Subject], question: Question
) -> None:
    policy = compiled(document)
    agents = [each for each in everybody if each.kind is PrincipalKind.AGENT and each.lease is None and not each.disabled]
    for answer in who_can(policy, everybody, question):
        expected: list[tuple[str, Effect]] = []
        refused = answer.decision.effect is Effect.DENY and answer.subject.lease is None and not answer.subject.disabled
        if refused and question.action in LEASABLE:
            expected = [
                (agent.principal, effect)
                for agent in agents
                if (effect := brute_force(policy, answer.subject, agent, question)) is not Effect.DENY
            ]
        assert [(each.role, each.decision.effect) for each in answer.obtainable] == expected


def brute_force(policy: CompiledPolicy, asker: Subject, agent: Subject, question: Question) -> Effect:
    """Ask for a lease of an hour, and for the act with it."""
    path = (question.path or b"**").decode("utf-8", "surrogateescape")
    path = path if path.isprintable() else "**"
    request = Scope((path,), frozenset({question.action}), 5, 3605, destinations=("mail",))
    start = Facts(
        now=5, principal=agent.principal, kind=PrincipalKind.AGENT, roles=asker.roles, on_behalf_of=asker.principal, action=Action.START,
        path=None, lease=None, lease_state=None, left={}, needs={}, protected=question.protected, change=None, request=request, gate=None,
        disabled=False, taint=agent.taint, label=question.label, outward=False, destination="mail",
    )  # fmt: skip
    limits = envelope(policy, start, request)
    request = replace(request, expires=5 + min(3600, limits.ttl or 3600), budgets=dict(limits.budgets))
    started = decide(policy, replace(start, request=request))
    act = replace(
        start, roles=agent.roles, action=question.action, path=question.path, lease=request, lease_state=LeaseState.LIVE, request=None,
        outward=question.action is Action.EGRESS,
    )  # fmt: skip
    return Effect.DENY if decide(policy, act).effect is Effect.DENY else started.effect


def test_the_owner_may_have_somebody_write_by_starting_a_run() -> None:
    policy = compile_policy(default_policy(), "default.yaml")
    owner = Subject(PrincipalName("owner"), PrincipalKind.HUMAN, frozenset({"owner"}))
    coder = Subject(PrincipalName("coder"), PrincipalKind.AGENT, frozenset())
    writing = Question(Action.WRITE, 5, b"src/a.py")
    of_owner, of_coder = who_can(policy, [owner, coder], writing)
    assert (of_owner.decision.effect, of_coder.decision.effect) == (Effect.DENY, Effect.ALLOW)
    assert [(each.role, each.decision.effect) for each in of_owner.obtainable] == [("coder", Effect.ALLOW)]
    refused = who_can(policy, [owner, coder], replace(writing, path=b"a/id_rsa"))
    assert not refused[0].obtainable and refused[1].decision.rule == "credentials-refused"
