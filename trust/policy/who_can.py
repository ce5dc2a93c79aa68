"""Who may do something, as `decide` says of each of them.

1. Everybody is asked about with the same `decide` that acts: principals by themselves, and the leases they act with.
2. Who may not, but could have a lease for exactly that, is told so, with what it takes.
3. Pure; the order of the answers is that of the subjects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trust.errors import PatternInvalid
from trust.labels import DEFAULT, Label
from trust.model import LEASABLE, Action, ChangeFacts, Decision, Effect, Facts, LeaseState, PrincipalKind, PrincipalName, Scope
from trust.policy.decide import decide, envelope
from trust.policy.patterns import parse_pattern
from trust.policy.rules import CompiledPolicy, Limits

NOBODY = PrincipalName("")
"""For whom somebody acts who acts alone."""
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody, alone or (`lease` and its id) with what a run was given."""

    principal: PrincipalName
    kind: PrincipalKind
    roles: frozenset[str]
    on_behalf_of: PrincipalName = NOBODY
    lease: Scope | None = None
    lease_id: str = ""
    taint: Label = DEFAULT
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Obtainable:
    """A run that somebody may start to be allowed: whom it is for, and what is said of the request."""

    asker: PrincipalName
    role: PrincipalName
    decision: Decision


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one subject, and the runs that would let it do it where it may not."""

    subject: Subject
    decision: Decision
    obtainable: tuple[Obtainable, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """An act: the action, the path where it is about one, the label of what is there, when, and where to."""

    action: Action
    now: int
    path: bytes | None = None
    label: Label = DEFAULT
    destination: str = ""
    protected: bool = False


def who_can(policy: CompiledPolicy, subjects: Sequence[Subject], question: Question) -> tuple[Answer, ...]:
    """Return what the policy says of everybody. A merge is one of the path alone, by whoever proposes it; a start is asked for an hour."""
    return tuple(_answer(policy, subjects, each, question) for each in subjects)


def facts_of(subject: Subject, question: Question) -> Facts:
    """Return the facts of a subject asking."""
    merges = question.action is Action.MERGE
    paths = () if question.path is None else (question.path,)
    return Facts(
        now=question.now,
        principal=subject.principal,
        kind=subject.kind,
        roles=subject.roles,
        on_behalf_of=subject.on_behalf_of,
        action=question.action,
        path=None if merges or question.action is Action.START else question.path,
        lease=subject.lease,
        lease_state=None if subject.lease is None else LeaseState.LIVE,
        left={},
        needs={},
        protected=question.protected or merges,
        change=ChangeFacts(paths=paths, files=len(paths)) if merges else None,
        request=_request(Action.READ, question) if question.action is Action.START else None,
        gate=None,
        disabled=subject.disabled,
        taint=subject.taint,
        label=question.label,
        outward=subject.lease is not None and Action.EGRESS in subject.lease.actions,
        destination=question.destination,
    )


def _answer(policy: CompiledPolicy, subjects: Sequence[Subject], subject: Subject, question: Question) -> Answer:
    decision = decide(policy, facts_of(subject, question))
    if decision.effect is not Effect.DENY or subject.lease is not None or question.action not in LEASABLE or subject.disabled:
        return Answer(subject, decision)
    return Answer(subject, decision, tuple(_runs(policy, subjects, subject, question)))


def _runs(policy: CompiledPolicy, subjects: Iterable[Subject], asker: Subject, question: Question) -> Iterator[Obtainable]:
    """Yield the runs that somebody may start, and whose lease would then be allowed the act."""
    for role in subjects:
        if role.lease is not None or role.kind is not PrincipalKind.AGENT or role.disabled:
            continue
        request = _request(question.action, question)
        start = replace(facts_of(role, replace(question, action=Action.START)), roles=asker.roles, on_behalf_of=asker.principal)
        request = _within(envelope(policy, start, request), request)
        started = decide(policy, replace(start, request=request))
        holder = replace(role, on_behalf_of=asker.principal, lease=request)
        if started.effect is not Effect.DENY and decide(policy, facts_of(holder, question)).effect is not Effect.DENY:
            yield Obtainable(asker.principal, role.principal, started)


def _request(action: Action, question: Question) -> Scope:
    """Return the smallest lease for an act, for an hour."""
    destinations = (question.destination,) if question.destination else ()
    return Scope((_pattern(question.path),), frozenset({action}), question.now, question.now + _HOUR, destinations=destinations)


def _within(limits: Limits, request: Scope) -> Scope:
    """Return the request with what it leaves open set to what the policy gives at once."""
    return replace(request, expires=request.not_before + min(_HOUR, limits.ttl or _HOUR), budgets=dict(limits.budgets))


def _pattern(path: bytes | None) -> str:
    """Return the pattern of a path, or of everything where no pattern spells it."""
    try:
        return parse_pattern((path or b"**").decode()).text
    except (UnicodeDecodeError, PatternInvalid):
        return "**"
