"""Questions for people: what exactly is asked, who may answer, what an answer releases, and what one that came too late is worth.

1. A question is bound twice: its digest is of everything shown, and an answer names it; its act is of exactly what would be done, and only
   that act is released by an approval.
2. What became of a question (`GateState`) and how far that was carried out (`GatePhase`) are separate:

       pending -> approved | rejected | expired | withdrawn | superseded       approved and not used -> lapsed | withdrawn | superseded
       pending -> decided -> acknowledged -> closed                            only what was approved is acknowledged, and once

   Every function here returns the next value or raises; the engine replaces the value it was made from by compare-and-set.
3. Times are half open: a deadline, and the end of an approval, are the first moments at which it is too late.
4. A run never answers: neither a lease nor an agent's own token, nor whoever asked or stands in its chain of actors. The role ``owner``
   answers every question. Where several have to approve, they are different people, and one rejection is enough.
5. Nobody answering is never an approval.
6. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trust.canonical import canonical
from trust.errors import AlreadyAnswered, GateClosed, GateMismatch, NotEntitled, ScopeInvalid
from trust.model import Answer, Ask, Bypass, Digest, Gate, GateId, GatePhase, GateState, Identity, PrincipalKind
from trust.policy.decide import POLICY_CHANGE
from trust.policy.rules import OWNER

FALLBACKS = frozenset({"reject", "withdraw"})
"""What can happen when nobody answers."""
MOST_APPROVALS = 16
MOST_PENDING = 10
"""How many questions of one run wait at once; whoever would ask more has to wait for answers."""
REASK_SECONDS = 3600
"""For how long a rejection answers the same question of the same run."""
LONGEST_BYPASS = 86400


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants decided by people.

    `subject` is ``kind:id``. `act` is exactly what would be done, and nothing that depends on when it is asked. `card` is what a person
    judges by. `rule` asked. `alike` is what makes two questions the same to a judge; None: nothing else is like this one. With `standing`
    an approval counts for every repeat of the act while it lasts.
    """

    subject: str
    act: Mapping[str, Any]
    card: Mapping[str, Any]
    ask: Ask
    rule: str
    asked_by: str
    run: str = ""
    on_behalf_of: str = ""
    actors: tuple[str, ...] = ()
    alike: Mapping[str, Any] | None = None
    standing: bool = False

    @property
    def kind(self) -> str:
        """Return what kind of act it is about: the first part of the subject."""
        return kind_of(self.subject)


def kind_of(subject: str) -> str:
    """Return the first part of a subject, which names the kind of act."""
    return subject.partition(":")[0]


def act_digest(subject: str, act: Mapping[str, Any]) -> Digest:
    """Return the digest of exactly what would be done: its kind and the act, whoever asks for it."""
    return _digest("act", [kind_of(subject), dict(act)])


def card_digest(question: Question) -> Digest:
    """Return the digest of everything that an answer is about: what would be done, what is shown and what the question needs."""
    ask = question.ask
    terms = [ask.required_role, ask.approvals, ask.independent, ask.deadline, ask.use_within, ask.fallback, question.standing]
    return _digest("gate", [question.subject, question.rule, question.run, dict(question.act), dict(question.card), terms])


def _digest(what: str, value: object) -> Digest:
    return Digest(hashlib.sha256(f"nas-{what}-v1\0".encode() + canonical(value).encode()).hexdigest())


def make_gate(number: GateId, question: Question, excluded: Iterable[str], now: int) -> Gate:
    """Return the gate of a question, which `excluded` may not answer.

    Raises `ScopeInvalid` for one that nobody could answer in time or whose fallback would approve.
    """
    ask = question.ask
    if not ask.required_role:
        raise ScopeInvalid("gate", "needs a role that may answer")
    if ask.deadline <= 0 or ask.use_within <= 0:
        raise ScopeInvalid("gate", "nobody can answer, or use an answer, in no time")
    if ask.fallback not in FALLBACKS:
        raise ScopeInvalid(ask.fallback, f"the fallback is one of {', '.join(sorted(FALLBACKS))}")
    if not 1 <= ask.approvals <= MOST_APPROVALS:
        raise ScopeInvalid("gate", f"1 to {MOST_APPROVALS} people can be asked to approve")
    act = act_digest(question.subject, question.act)
    alike = act if question.alike is None else _digest("alike", [question.kind, question.rule, dict(question.alike)])
    return Gate(
        id=number,
        subject=question.subject,
        digest=card_digest(question),
        card=dict(question.card),
        required_role=ask.required_role,
        created=now,
        deadline=now + ask.deadline,
        fallback=ask.fallback,
        asked_by=question.asked_by,
        act=act,
        alike=alike,
        run=question.run,
        rule=question.rule,
        approvals=ask.approvals,
        excluded=tuple(sorted(set(excluded))),
        use_within=ask.use_within,
        standing=question.standing,
    )


def exclude(question: Question, candidates: Iterable[str]) -> frozenset[str]:
    """Return who may not answer a question, of the people (`candidates`) who could by their roles.

    Whoever asks and whoever it handed the lease on to never do; with `independent`, whom the run works for neither. Someone who asks for
    themselves, with no run in between, is left out only where enough others can answer: on an appliance of one person the question is a
    second look.
    """
    left_out = {question.asked_by, *question.actors}
    if question.ask.independent:
        return frozenset(left_out | {question.on_behalf_of} - {""})
    others = set(candidates) - left_out
    alone = len(others) < question.ask.approvals and question.asked_by in {question.on_behalf_of}
    return frozenset(left_out - ({question.asked_by} if alone else set()))


# -- deciding ---------------------------------------------------------------------------------------------------------


def answer(gate: Gate, digest: Digest, approve: bool, by: Identity, comment: str, now: int) -> Gate:
    """Return the gate after somebody's answer; it stays pending while others have to approve too.

    Raises `NotEntitled`, `GateMismatch`, `AlreadyAnswered` or `GateClosed`.
    """
    check_answer(gate, digest, by, now)
    name = by.principal.name
    if approve and any(given.by == name for given in gate.answers):
        missing = gate.approvals - len(gate.answers)
        raise AlreadyAnswered(gate.id, f"{name} has said yes already; {missing} more {'has' if missing == 1 else 'have'} to")
    answers = (*gate.answers, Answer(name, approve, now, comment))
    if approve and len(answers) < gate.approvals:
        return replace(gate, answers=answers)
    return replace(
        gate,
        state=GateState.APPROVED if approve else GateState.REJECTED,
        phase=GatePhase.DECIDED,
        answers=answers,
        answered_by=", ".join(given.by for given in answers if given.approve is approve),
        answered=now,
        comment=comment,
        usable_until=now + gate.use_within if approve else None,
    )


def check_answer(gate: Gate, digest: Digest, by: Identity, now: int) -> None:
    """Raise why this answer cannot count: `NotEntitled`, `GateMismatch` or `GateClosed`."""
    check_right(gate, by)
    if gate.digest != digest:
        raise GateMismatch(gate.id, "the question is about something else than what was answered")
    if gate.state is not GateState.PENDING or now >= gate.deadline:
        raise GateClosed(gate.id, describe_end(gate, now))


def check_right(gate: Gate, by: Identity) -> None:
    """Raise `NotEntitled` when somebody may not answer a gate."""
    if by.lease is not None or by.principal.kind is PrincipalKind.AGENT:
        raise NotEntitled(gate.id, "a run does not answer questions about runs")
    if by.roles.isdisjoint({gate.required_role, OWNER}):
        raise NotEntitled(gate.id, f"{by.principal.name} lacks the role {gate.required_role}")
    if by.principal.name in gate.excluded:
        raise NotEntitled(gate.id, f"{by.principal.name} is on the asking side: somebody else has to answer")


def expire(gate: Gate, now: int) -> Gate | None:
    """Return the gate once nobody answered it, or used its approval, in time; None while there is time or nothing to end."""
    if gate.state is GateState.PENDING and now >= gate.deadline:
        return replace(gate, state=GateState.EXPIRED, phase=GatePhase.DECIDED, answered=now)
    if gate.state is GateState.APPROVED and gate.phase is GatePhase.DECIDED and _is_over(gate, now):
        return replace(gate, state=GateState.LAPSED)
    return None


def withdraw(gate: Gate, why: str, now: int) -> Gate:
    """Return the gate after it was taken back, answered or not. Raises `GateClosed` once its act began or it has ended."""
    return _take_back(gate, now, GateState.WITHDRAWN, comment=why)


def supersede(gate: Gate, successor: str, now: int) -> Gate:
    """Return the gate after what it was about changed. Raises `GateClosed` once its act began or it has ended."""
    return _take_back(gate, now, GateState.SUPERSEDED, successor=successor)


def _take_back(gate: Gate, now: int, state: GateState, **what: str) -> Gate:
    if gate.state not in {GateState.PENDING, GateState.APPROVED} or gate.phase not in {GatePhase.PENDING, GatePhase.DECIDED}:
        raise GateClosed(gate.id, describe_end(gate, now))
    return replace(gate, state=state, phase=GatePhase.DECIDED, answered=gate.answered or now, **what)  # type: ignore[arg-type]


# -- carrying out -----------------------------------------------------------------------------------------------------


def releases(gate: Gate, now: int) -> bool:
    """Tell whether a gate's approval still counts for its act."""
    unused = gate.phase is GatePhase.DECIDED or (gate.standing and gate.phase is not GatePhase.PENDING)
    return gate.state is GateState.APPROVED and unused and not _is_over(gate, now)


def acknowledge(gate: Gate, act: Digest, now: int) -> Gate:
    """Return the gate once its act begins, which spends an approval that is not standing.

    Raises `GateMismatch` for another act, `GateClosed` when the approval does not count.
    """
    if gate.act != act:
        raise GateMismatch(gate.id, "what was approved is something else than what would be done now")
    if not releases(gate, now):
        raise GateClosed(gate.id, describe_end(gate, now))
    return replace(gate, phase=GatePhase.ACKNOWLEDGED, acknowledged=now) if gate.phase is GatePhase.DECIDED else gate


def close(gate: Gate, outcome: str, now: int) -> Gate:
    """Return the gate once nothing more follows from it; the first outcome stays. Raises `GateClosed` while it is pending."""
    if gate.phase is GatePhase.PENDING:
        raise GateClosed(gate.id, "it waits for an answer")
    if gate.phase is GatePhase.CLOSED:
        return gate
    return replace(gate, phase=GatePhase.CLOSED, closed=gate.closed or now, outcome=gate.outcome or outcome)


def _is_over(gate: Gate, now: int) -> bool:
    return gate.usable_until is not None and now >= gate.usable_until


def describe_end(gate: Gate, now: int) -> str:
    """Return why a gate takes no answer or releases nothing, for people."""
    if gate.state is GateState.PENDING:
        return f"the deadline {gate.deadline} has passed" if now >= gate.deadline else "it waits for an answer"
    if gate.state is GateState.SUPERSEDED:
        return f"superseded by {gate.successor}"
    by = f" by {gate.answered_by}" if gate.answered_by else ""
    if gate.state is GateState.APPROVED and gate.phase is not GatePhase.DECIDED:
        return f"already approved{by} and used"
    if gate.state is GateState.APPROVED and _is_over(gate, now):
        return f"approved{by}, but not used in time"
    because = f": {gate.comment}" if gate.comment and gate.state is not GateState.APPROVED else ""
    return f"already {gate.state.value}{by}{because}"


# -- bypasses ---------------------------------------------------------------------------------------------------------


def make_bypass(number: GateId, rule: str, policy: str, by: Identity, reason: str, seconds: int, now: int) -> Bypass:
    """Return a bypass of a rule as it reads in the policy of this hash. Raises `NotEntitled`, `ScopeInvalid`."""
    if by.lease is not None or OWNER not in by.roles or by.principal.kind is not PrincipalKind.HUMAN:
        raise NotEntitled(rule, f"{by.principal.name} is no person with the role {OWNER}")
    if rule == POLICY_CHANGE:
        raise NotEntitled(rule, "a change of the policy is always asked about")
    if not reason.strip():
        raise ScopeInvalid(rule, "a bypass needs a reason")
    if not 0 < seconds <= LONGEST_BYPASS:
        raise ScopeInvalid(rule, f"a bypass lasts up to {LONGEST_BYPASS} seconds")
    return Bypass(number, rule, policy, by.principal.name, reason.strip(), now, now + seconds)


def is_live(bypass: Bypass, policy: str, now: int) -> bool:
    """Tell whether a bypass counts under the policy of this hash."""
    return bypass.ended is None and bypass.policy == policy and bypass.created <= now < bypass.expires


def covering(bypasses: Iterable[Bypass], asking: Iterable[str], policy: str, now: int) -> tuple[Bypass, ...]:
    """Return one live bypass for each of the rules that ask, nothing when one of them is not bypassed."""
    live = {bypass.rule: bypass for bypass in bypasses if is_live(bypass, policy, now)}
    wanted = tuple(asking)
    covered = bool(wanted) and POLICY_CHANGE not in wanted and all(rule in live for rule in wanted)
    return tuple(live[rule] for rule in wanted) if covered else ()
