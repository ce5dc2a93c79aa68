"""What the command line tells about policies by itself: from files, or from a data directory, with or without a daemon beside it.

1. Needs no network and no credential; a data directory is read as whoever may read its files reads it.
2. Records and changes nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.authority import gather
from nasd.config import Settings
from nasd.durations import parse_duration, parse_size
from nasd.errors import NotInitialised
from nasd.paths import parse_path
from nasd.policy_views import view_answers, view_diff, view_explanation, view_findings, view_replay
from nasd.replaying import replay_records
from trust.errors import FactsIncomplete, PolicyInvalid, Unknown
from trust.facts import read_facts
from trust.labels import DEFAULT, Label, parse_label
from trust.leases import lease_state
from trust.model import (
    LEASABLE,
    Action,
    BudgetKind,
    ChangeFacts,
    Facts,
    Identity,
    LeaseId,
    LeaseState,
    Principal,
    PrincipalKind,
    PrincipalName,
    Scope,
)
from trust.policy import CompiledPolicy, compile_policy, examine_policy, explain, policy_schema
from trust.policy.diffing import compare_policies
from trust.policy.linting import Known
from trust.policy.who_can import Question, Subject, who_can
from trust.service import Trust

_DAY = 86400


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a policy, and what it is called in positions."""

    text: str
    name: str

    def compiled(self) -> CompiledPolicy:
        """Return the policy. Raises `Kind.INVALID` naming its first error."""
        try:
            return compile_policy(self.text, self.name)
        except PolicyInvalid as error:
            raise Fault(Kind.INVALID, str(error.why), hint=f"nas policy validate {self.name} names everything that is wrong") from None


@contextmanager
def opened(settings: Settings) -> Iterator[Trust]:
    """Open what a data directory knows. Raises `NotInitialised`."""
    if not settings.trust.is_dir():
        raise NotInitialised(f"{settings.home} holds no Agent NAS yet", hint="name the data directory with NAS_HOME, or a policy file")
    trust = Trust.open(settings.trust)
    try:
        yield trust
    finally:
        trust.close()


def adopted(trust: Trust) -> Source:
    """Return the policy in force. Raises `Kind.NOT_FOUND` before the first."""
    try:
        text, name, _ = trust.adopted_policy()
    except Unknown:
        raise Fault(Kind.NOT_FOUND, "no policy was adopted yet", hint="name a policy file") from None
    return Source(text, name)


def schema() -> Document:
    """Return the JSON Schema of policy documents."""
    return policy_schema()


# -- validate ---------------------------------------------------------------------------------------------------------


def validate_policy(text: str, source: str, known: Known | None = None) -> Document:
    """Return whether a policy document may be adopted, with every finding and its position."""
    return view_findings(examine_policy(text, source, known))


def validate_here(settings: Settings, source: Source | None) -> Document:
    """Validate a policy (None: the one in force) with what a data directory knows of names and roles."""
    with opened(settings) as trust:
        policy = source or adopted(trust)
        principals = {str(each.name): _standing(each) for each in trust.principals()}
    return validate_policy(policy.text, policy.name, Known(principals))


def _standing(principal: Principal) -> frozenset[str]:
    roles = (role.strip() for role in principal.attributes.get("roles", "").split(","))
    return frozenset(role for role in roles if role)


# -- explain ----------------------------------------------------------------------------------------------------------


def explain_here(settings: Settings, source: Source | None, asked: Mapping[str, Any]) -> Document:
    """Explain a decision about given facts; the policy (None: the one in force) and whom it is about may come from a data directory."""
    if source is not None and not asked.get("lease") and not asked.get("run") and not settings.trust.is_dir():
        policy = source.compiled()
        return view_explanation(explain(policy, _facts(policy, None, asked)))
    with opened(settings) as trust:
        policy = (source or adopted(trust)).compiled()
        return view_explanation(explain(policy, _facts(policy, trust, asked)))


def explain_facts(source: Source, text: str) -> Document:
    """Explain a decision about facts as a record or a difference tells them. Raises `Kind.INVALID`."""
    try:
        facts = read_facts(json.loads(text))
    except (ValueError, AttributeError, FactsIncomplete) as error:
        raise Fault(Kind.INVALID, f"these are no facts: {error}", hint="give the `facts` of a record or of a difference") from None
    return view_explanation(explain(source.compiled(), facts))


def _facts(policy: CompiledPolicy, trust: Trust | None, asked: Mapping[str, Any]) -> Facts:
    """Return the facts that the words of a command line stand for."""
    action = read_action(asked["action"])
    now = int(asked.get("at") or time.time())
    identity = _identity(policy, trust, asked, action, now)
    paths = [parse_path(each) for each in asked.get("paths", ())]
    taint = read_label(asked.get("taint"))
    if trust is not None and identity.lease is not None and not asked.get("taint"):
        taint = trust.ledger.taint(identity.lease.run)
    label = read_label(asked["label"]) if asked.get("label") else policy.label_of(paths[0]) if paths else DEFAULT
    facts = gather(
        identity,
        action,
        now,
        path=paths[0] if paths and action not in (Action.MERGE, Action.START) else None,
        protected=bool(asked.get("protected")) or action is Action.MERGE,
        change=_change(paths, asked.get("change", {})) if action is Action.MERGE else None,
        request=_request(asked.get("request", {}), now) if action is Action.START else None,
        left=dict(trust.left(identity.lease.id)) if trust is not None and identity.lease is not None else {},
        taint=taint,
        label=label,
        outward=True if asked.get("outward") else None,
        destination=asked.get("destination") or "",
    )
    if asked.get("on_behalf_of"):
        facts = replace(facts, on_behalf_of=PrincipalName(asked["on_behalf_of"]))
    if facts.lease is None and action in LEASABLE and facts.kind is not PrincipalKind.HUMAN:
        facts = replace(facts, lease=_whole(now, asked), lease_state=LeaseState.LIVE)
    return facts


def _whole(now: int, asked: Mapping[str, Any]) -> Scope:
    """Return the lease that keeps nothing back, so that the policy alone decides."""
    declared = (asked["destination"],) if asked.get("declared") and asked.get("destination") else ()
    return Scope(("**",), LEASABLE, 0, now + _DAY, destinations=declared)


def _identity(policy: CompiledPolicy, trust: Trust | None, asked: Mapping[str, Any], action: Action, now: int) -> Identity:
    if asked.get("run") or asked.get("lease"):
        if trust is None:
            raise Fault(Kind.INVALID, "a lease is looked up in a data directory", hint="name it with --home")
        name = asked.get("lease") or str(trust.document("run", asked["run"]).body["lease"])
        lease = trust.lease(LeaseId(name))
        principal = trust.principal(lease.principal)
        return Identity(principal, trust.roles(principal), lease=lease)
    kind = PrincipalKind(asked.get("kind") or ("agent" if action in LEASABLE | {Action.MERGE, Action.START} else "human"))
    name, roles = asked.get("principal") or "someone", frozenset(asked.get("roles", ()))
    if trust is not None and asked.get("principal"):
        principal = trust.principal(name)
        return Identity(principal, trust.roles(principal) | roles)
    return Identity(Principal(PrincipalName(name), kind, now), policy.roles_of(name) | roles)


def _change(paths: list[bytes], numbers: Mapping[str, str]) -> ChangeFacts:
    known = {field.name for field in fields(ChangeFacts)} - {"paths", "deleted"}
    values: dict[str, Any] = {}
    for name, text in numbers.items():
        if name not in known:
            raise Fault(Kind.INVALID, f"a change has no {name}", hint=f"known: {', '.join(sorted(known))}")
        values[name] = text if name == "checks" else _number(name, text)
    return ChangeFacts(paths=tuple(paths), **({"files": len(paths)} | values))


def _number(name: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise Fault(Kind.INVALID, f"{name}: {error}", hint="write a whole number, or a size such as 10MiB") from None


def _request(asked: Mapping[str, Any], now: int) -> Scope:
    try:
        actions = frozenset(Action(each) for each in asked.get("actions") or ("list", "read", "write", "delete", "propose"))
        ttl = parse_duration(asked.get("ttl") or _DAY)
    except ValueError as error:
        raise Fault(
            Kind.INVALID, f"the request: {error}", hint="actions are as `nas run start --actions` takes them, times such as 8h"
        ) from None
    budgets = {BudgetKind(kind): amount for kind, amount in (asked.get("budgets") or {}).items()}
    return Scope(tuple(asked.get("paths") or ("**",)), actions, now, now + int(ttl), budgets=budgets)


def read_action(text: str) -> Action:
    """Return the action of a word. Raises `Kind.INVALID`."""
    try:
        return Action(text)
    except ValueError:
        known = ", ".join(action.value for action in Action)
        raise Fault(Kind.INVALID, f"there is no action {text!r}", hint=f"known: {known}") from None


def read_label(text: str | None) -> Label:
    """Return the label that ``external/sensitive`` or one of the two words stands for. Raises `Kind.INVALID`."""
    words = [] if text is None else text.split("/")
    origins = [word for word in words if word in {"owner", "internal", "external"}]
    try:
        if len(words) == 2:
            return parse_label(words[0], words[1])
        if len(words) == 1:
            return parse_label(words[0], None) if origins else parse_label(None, words[0])
    except ValueError as error:
        raise Fault(Kind.INVALID, str(error), hint="write origin/sensitivity, such as external/sensitive") from None
    if words:
        raise Fault(Kind.INVALID, f"{text!r} is no label", hint="write origin/sensitivity, such as external/sensitive")
    return DEFAULT


# -- who-can ----------------------------------------------------------------------------------------------------------


def who_can_here(settings: Settings, source: Source | None, asked: Mapping[str, Any]) -> list[Document]:
    """Return what a policy says of everybody: those a data directory knows and its live leases, else those the policy names."""
    question = _question(asked)
    if source is not None and not settings.trust.is_dir():
        policy = source.compiled()
        return view_answers(who_can(policy, list(_named(policy)), _labelled(policy, question, asked)))
    with opened(settings) as trust:
        policy = (source or adopted(trust)).compiled()
        return view_answers(who_can(policy, list(_everybody(policy, trust, question.now)), _labelled(policy, question, asked)))


def _question(asked: Mapping[str, Any]) -> Question:
    path = parse_path(asked["path"]) if asked.get("path") is not None else None
    protected = bool(asked.get("protected"))
    return Question(read_action(asked["action"]), int(time.time()), path, DEFAULT, asked.get("destination") or "", protected)


def _labelled(policy: CompiledPolicy, question: Question, asked: Mapping[str, Any]) -> Question:
    if asked.get("label"):
        return replace(question, label=read_label(asked["label"]))
    return question if question.path is None else replace(question, label=policy.label_of(question.path))


def _everybody(policy: CompiledPolicy, trust: Trust, now: int) -> Iterator[Subject]:
    principals = {each.name: each for each in trust.principals()}
    roles = {name: policy.roles_of(name) | _standing(each) for name, each in principals.items()}
    for name, principal in principals.items():
        yield Subject(name, principal.kind, roles[name], disabled=principal.disabled)
    for lease in trust.leases():
        principal = principals[lease.principal]
        if lease_state(lease, now) is LeaseState.LIVE:
            yield Subject(
                principal.name,
                principal.kind,
                roles[principal.name],
                lease.on_behalf_of,
                lease.scope,
                lease.id,
                trust.ledger.taint(lease.run),
                principal.disabled or principals[lease.on_behalf_of].disabled,
            )


def _named(policy: CompiledPolicy) -> Iterator[Subject]:
    """Yield those a policy names: people by their roles, agents and services by rules, and an agent nobody names for each person."""
    people = sorted({name for members in policy.roles.values() for name in members})
    for name in people:
        yield Subject(PrincipalName(name), PrincipalKind.HUMAN, policy.roles_of(name))
    named: dict[str, PrincipalKind] = {}
    for who in (*(grant.who for grant in policy.grants), *(guard.who for guard in policy.guards)):
        texts = [] if who.principals is None else [pattern.text for pattern in who.principals.patterns]
        kinds = sorted(who.kinds or {PrincipalKind.AGENT}, key=lambda kind: kind.value)
        named.update((text, kinds[0]) for text in texts if not {"*", "?"} & set(text) and text not in people)
    for name, kind in sorted({"agent": PrincipalKind.AGENT, **named}.items()):
        yield Subject(PrincipalName(name), kind, policy.roles_of(name))


# -- diff, replay -----------------------------------------------------------------------------------------------------


def diff_here(settings: Settings, before: Source | None, after: Source) -> Document:
    """Return what a policy would decide differently from another (None: the one in force)."""
    if before is None:
        with opened(settings) as trust:
            before = adopted(trust)
    return view_diff(compare_policies(before.compiled(), after.compiled()))


def replay_here(settings: Settings, proposed: Source | None, limit: int | None = None) -> Document:
    """Take the recorded decisions of a data directory again, and by a proposed policy as well where there is one."""
    policy = proposed.compiled() if proposed is not None else None
    with opened(settings) as trust:
        return view_replay(replay_records(trust, policy, limit))
