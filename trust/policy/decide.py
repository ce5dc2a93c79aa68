"""The decision: facts in, allow, deny or gate with a reason out.

1. Total and pure: every `Facts` gives a `Decision`; no I/O, no clock, no randomness, no regular expressions, no state.
2. What is not allowed is denied. A fact that the action needs and that is missing denies.
3. The order: disabled, lease, protected branch, budget, what is built in, refusing guards, the Rule of Two where it refuses, asking guards
   with the Rule of Two where it asks, grants, default. Grants widen and guards tighten; neither has an order among its own.
4. Built in: the role ``owner``, acting without a lease, may administer, start, answer, observe, restore, endorse, list and read. A policy
   that has gone wrong never locks the owner out. Nothing built in writes to a branch or merges. Built in, too: a merge that changes the
   policy asks the owner, whatever the policy says; what would break the Rule of Two asks the owner, until the policy says otherwise.
5. An approved gate answers the guards that ask, never those that refuse. For what a lease is used for it does not replace a grant either.
6. Every denial says which line to change or whom to ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trust.model import Action, Ask, ChangeFacts, Decision, Denial, Effect, Facts, LeaseState, Position, Scope
from trust.policy.covering import covered
from trust.policy.patterns import path_set
from trust.policy.rules import OWNER, CompiledPolicy, Grant, Limits, breaks_rule, combined_label

BUILT_IN = Position("built in", 0, 0)
"""The position of what no document says."""
OWNER_ACTIONS = frozenset({Action.ADMINISTER, Action.ANSWER, Action.OBSERVE, Action.RESTORE, Action.ENDORSE, Action.LIST, Action.READ})
"""What the role ``owner`` may do whatever the policy says; ``start`` is answered by the envelope."""
ENVELOPE = "envelope"
"""What a decision about a request outside of every envelope names as its rule."""
ENVELOPE_ASK = Ask(OWNER, 24 * 3600)
"""What a request outside of every envelope needs."""
POLICY_PATH = b".nas/policy.yaml"
"""Where the policy lives on the protected branch."""
POLICY_CHANGE = "policy-change"
"""What a decision names as its rule when a merge would change the policy itself."""
_ABOUT_A_PATH = frozenset({Action.LIST, Action.READ, Action.WRITE, Action.DELETE})
_NEEDS_A_GRANT = frozenset({Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.PROPOSE, Action.EGRESS, Action.START})
_CHANGES_A_BRANCH = frozenset({Action.WRITE, Action.DELETE, Action.RESTORE})
_ENDED = {
    LeaseState.REVOKED: (Denial.LEASE_REVOKED, "the lease was revoked", "ask for another run: nas run start"),
    LeaseState.EXPIRED: (Denial.LEASE_EXPIRED, "the lease has expired", "start another run; this one's work is kept: nas run start"),
    LeaseState.PENDING: (Denial.LEASE_PENDING, "the lease does not count yet", "wait until it begins: nas lease show"),
}


def decide(policy: CompiledPolicy, facts: Facts) -> Decision:
    """Return what the policy says about the facts."""
    return (
        _judge_facts(facts)
        or _judge_lease(facts)
        or _judge_branch(facts)
        or _judge_budget(facts)
        or _judge_owner(facts)
        or _judge_refusals(policy, facts)
        or _judge_gates(policy, facts)
        or _judge_grants(policy, facts)
    )


def _deny(denial: Denial, reason: str, hint: str, rule: str, position: Position = BUILT_IN) -> Decision:
    return Decision(Effect.DENY, reason, rule, position, denial, hint=hint)


def show(path: bytes) -> str:
    """Return a path for people; the root is ``/``."""
    return path.decode("utf-8", "backslashreplace") or "/"


def _judge_facts(facts: Facts) -> Decision | None:
    if facts.disabled:
        return _deny(Denial.DISABLED, f"{facts.principal} may not act any more", "the owner can enable another principal", "disabled")
    missing = missing_fact(facts)
    if missing:
        return _deny(
            Denial.POLICY, f"the facts do not tell {missing}", "this is a fault of the server, not of the request", "facts-incomplete"
        )
    return None


def missing_fact(facts: Facts) -> str:
    """Return what the action needs and the facts lack, in words, else empty."""
    if facts.action in _ABOUT_A_PATH and facts.path is None:
        return "the path"
    if facts.action is Action.MERGE and facts.change is None:
        return "the change"
    if facts.action is Action.START and facts.request is None:
        return "the requested lease"
    if facts.action is Action.EGRESS and not facts.destination:
        return "the destination"
    if facts.lease is not None and facts.lease_state is None:
        return "the state of the lease"
    return ""


def lease_state(facts: Facts) -> LeaseState | None:
    """Return the state of the lease; its own times end it even when the facts call it live."""
    if facts.lease is None or facts.lease_state is not LeaseState.LIVE:
        return facts.lease_state
    if facts.now >= facts.lease.expires:
        return LeaseState.EXPIRED
    return LeaseState.PENDING if facts.now < facts.lease.not_before else LeaseState.LIVE


def _judge_lease(facts: Facts) -> Decision | None:
    lease = facts.lease
    if lease is None:
        return None
    state = lease_state(facts)
    if state is not None and state is not LeaseState.LIVE:
        return _deny(*_ENDED[state], rule="lease")
    action = facts.action
    if action not in lease.actions:
        allowed = ", ".join(sorted(each.value for each in lease.actions)) or "nothing"
        hint = f"start a run with --actions {action.value}"
        return _deny(Denial.LEASE_ACTION, f"the lease allows {allowed}, not {action.value}", hint, "lease")
    if facts.path is not None and not path_set(lease.paths).matches(facts.path):
        hint = f"start a run with --paths that include {show(facts.path)}"
        return _deny(Denial.LEASE_PATH, f"the lease does not reach {show(facts.path)}", hint, "lease")
    if action is Action.READ and lease.ceiling is not None and not facts.label.within(lease.ceiling):
        reason = f"the lease reads up to {lease.ceiling} and this is {facts.label}"
        return _deny(Denial.LABEL, reason, "ask the owner for a lease with a higher ceiling", "lease")
    return None


def _judge_branch(facts: Facts) -> Decision | None:
    if not (facts.protected and facts.action in _CHANGES_A_BRANCH):
        return None
    return _deny(
        Denial.PROTECTED,
        "the branch is protected: it only moves by merges",
        "work on a run's branch and propose it: nas propose",
        "protected",
    )


def _judge_budget(facts: Facts) -> Decision | None:
    for kind in sorted(facts.needs, key=lambda kind: kind.value):
        need, left = facts.needs[kind], facts.left.get(kind)
        if left is not None and need > left:
            reason = f"the budget {kind.value} has {left} left and this needs {need}"
            return _deny(Denial.BUDGET, reason, f"start a run with a larger --budget {kind.value}=...", "budget")
    return None


def _judge_owner(facts: Facts) -> Decision | None:
    if facts.lease is None and OWNER in facts.roles and facts.action in OWNER_ACTIONS:
        return Decision(Effect.ALLOW, "the owner can always do this", OWNER, BUILT_IN)
    return None


def _judge_refusals(policy: CompiledPolicy, facts: Facts) -> Decision | None:
    for guard in policy.refusals_of[facts.action]:
        if not guard.mismatch(facts):
            touched = guard.touched(facts)
            reason = guard.reason if touched is None else f"{guard.reason}: {show(touched)}"
            return _deny(
                Denial.POLICY,
                reason,
                f"guard '{guard.id}' refuses this; ask the role owner to change {guard.position}",
                guard.id,
                guard.position,
            )
    if policy.rule_of_two.ask is None and policy.rule_of_two.enabled and breaks_rule(facts):
        hint = f"start another run for one of the three; ask the role owner to change {policy.rule_of_two.position}"
        return _deny(Denial.LABEL, describe_three(facts), hint, RULE_OF_TWO, policy.rule_of_two.position)
    return None


RULE_OF_TWO = "rule-of-two"
"""What decisions by the Rule of Two name as their rule."""


def describe_three(facts: Facts) -> str:
    """Return in words how an act would break the Rule of Two."""
    act = f"{facts.action.value}{'' if facts.path is None else ' ' + show(facts.path)}"
    if facts.action is Action.START:
        return "the lease could combine untrusted input, sensitive data and outward effects, which needs a person"
    return f"{act} would combine untrusted input, sensitive data and an effect outside of the branch (together {combined_label(facts)})"


def _judge_gates(policy: CompiledPolicy, facts: Facts) -> Decision | None:
    asking = [
        _Asking(guard.id, guard.position, guard.reason, guard.ask) for guard in policy.gates_of[facts.action] if not guard.mismatch(facts)
    ]
    rule = policy.rule_of_two
    if rule.ask is not None and rule.enabled and breaks_rule(facts):
        asking.append(_Asking(RULE_OF_TWO, rule.position, describe_three(facts), rule.ask))
    if changes_policy(facts):
        asking.append(_Asking(POLICY_CHANGE, BUILT_IN, "the policy itself would change", ENVELOPE_ASK))
    if not asking:
        return None
    first = asking[0]
    if facts.action in _NEEDS_A_GRANT:
        granted = _judge_grants(policy, facts)
        if facts.gate is not None or granted.effect is Effect.DENY:
            return granted  # people are not asked about what they could not allow, and their yes does not replace a grant
    elif facts.gate is not None:
        return Decision(Effect.ALLOW, f"approved by people: gate {facts.gate}", first.id, first.position)
    reasons = "; ".join(each.reason for each in asking)
    ask = combine_asks(each.ask for each in asking)
    return Decision(
        Effect.GATE,
        reasons,
        first.id,
        first.position,
        Denial.POLICY,
        ask,
        f"someone with the role {ask.required_role} decides: nas gate list",
        _names(policy, facts, asking),
    )


def _names(policy: CompiledPolicy, facts: Facts, asking: Iterable[_Asking]) -> tuple[str, ...]:
    """Return every rule that asks: a bypass of one of them is none of the others."""
    names = [each.id for each in asking]
    if facts.action is Action.START and facts.request is not None and exceeds_envelope(policy, facts, facts.request):
        names.append(ENVELOPE)
    return tuple(names)


def changes_policy(facts: Facts) -> bool:
    """Tell whether the act would change the policy itself; one that stands in the way of its folder does."""
    if facts.action is not Action.MERGE or facts.change is None:
        return False
    return any(path == POLICY_PATH or POLICY_PATH.startswith(path + b"/") for path in facts.change.paths)


class _Asking(NamedTuple):
    """A rule that asks people about the act."""

    id: str
    position: Position
    reason: str
    ask: Ask | None


def combine_asks(given: Iterable[Ask | None]) -> Ask:
    """Return the tightest of several asks: the shortest times, the most people, and the owner when they name different roles."""
    asks = [ask for ask in given if ask is not None]
    roles = {ask.required_role for ask in asks}
    fallbacks = {ask.fallback for ask in asks}
    return Ask(
        required_role=roles.pop() if len(roles) == 1 else OWNER,
        deadline=min(ask.deadline for ask in asks),
        fallback=fallbacks.pop() if len(fallbacks) == 1 else "reject",
        approvals=max(ask.approvals for ask in asks),
        independent=any(ask.independent for ask in asks),
        use_within=min(ask.use_within for ask in asks),
    )


def _judge_grants(policy: CompiledPolicy, facts: Facts) -> Decision:
    if facts.action is Action.MERGE and facts.change is not None:
        return _judge_change(policy, facts, facts.change)
    if facts.action is Action.START and facts.request is not None:
        return _judge_request(policy, facts, facts.request)
    for grant in policy.grants_of[facts.action]:
        if not grant.mismatch(facts):
            return _allow(grant)
    return _default(policy, facts)


def _allow(grant: Grant) -> Decision:
    return Decision(Effect.ALLOW, f"granted by '{grant.id}'", grant.id, grant.position)


def _default(policy: CompiledPolicy, facts: Facts, missed: str = "") -> Decision:
    subject = "" if facts.path is None else f" {show(facts.path)}"
    reason = f"no grant lets {facts.principal} {facts.action.value}{missed or subject}"
    nearest = _nearest(policy, facts)
    hint = nearest or f"add a grant for '{facts.action.value}' at {policy.grants_at}, or ask the role owner"
    return _deny(Denial.POLICY, reason, hint, "default", policy.grants_at)


def _nearest(policy: CompiledPolicy, facts: Facts) -> str:
    """Return the hint that names the first grant which is about this principal and fails on something else."""
    for grant in policy.grants_of[facts.action]:
        if not grant.who.mismatch(facts):
            failed = grant.mismatch(facts) or "paths"
            return f"grant '{grant.id}' fails on {failed}; ask the role owner to change {grant.position}"
    return ""


def _judge_change(policy: CompiledPolicy, facts: Facts, change: ChangeFacts) -> Decision:
    matching = [grant for grant in policy.grants_of[Action.MERGE] if not grant.mismatch(facts)]
    missed = next((path for path in change.paths if not any(grant.paths.matches(path) for grant in matching)), None)
    if matching and missed is None:
        return _allow(matching[0])
    return _default(policy, facts, "" if missed is None else f" a change of {show(missed)}")


def _judge_request(policy: CompiledPolicy, facts: Facts, request: Scope) -> Decision:
    starting = [grant for grant in policy.grants_of[Action.START] if not grant.mismatch(facts)]
    is_owner = OWNER in facts.roles and facts.lease is None
    if not starting and not is_owner:
        return _default(policy, facts)
    outside = exceeds_envelope(policy, facts, request)
    rule, position = (starting[0].id, starting[0].position) if starting else (OWNER, BUILT_IN)
    if not outside:
        return Decision(Effect.ALLOW, "the request is inside the policy's envelope", rule, position)
    if facts.gate is not None:
        return Decision(Effect.ALLOW, f"approved by people: gate {facts.gate}", rule, position)
    hint = f"ask for less, widen a grant at {policy.grants_at}, or let the role {OWNER} decide: nas gate list"
    return Decision(Effect.GATE, outside, ENVELOPE, policy.grants_at, Denial.POLICY, ENVELOPE_ASK, hint, (ENVELOPE,))


def exceeds_envelope(policy: CompiledPolicy, facts: Facts, request: Scope) -> str:
    """Return what of a requested lease no grant gives at once, in words, else empty."""
    for action in sorted(request.actions, key=lambda action: action.value):
        grants = [grant for grant in policy.grants_of[action] if not grant.who.mismatch(facts)]
        texts = [pattern.text for grant in grants for pattern in grant.paths.patterns]
        for path in request.paths:
            if not covered(texts, path):
                return f"no grant gives {action.value} on all of {path}"
    limits = envelope(policy, facts, request)
    if limits.ttl is not None and request.expires - facts.now > limits.ttl:
        return f"the policy gives {limits.ttl} seconds and {request.expires - facts.now} are asked for"
    for kind in sorted(limits.budgets, key=lambda kind: kind.value):
        asked = request.budgets.get(kind)
        if asked is None or asked > limits.budgets[kind]:
            return f"the policy gives {kind.value}={limits.budgets[kind]} and {'no limit' if asked is None else asked} is asked for"
    beyond = [name for name in request.destinations if not all(covered(accounts, name) for accounts in limits.destinations)]
    return f"no grant gives egress to {beyond[0]} at once" if beyond else ""


def envelope(policy: CompiledPolicy, facts: Facts, request: Scope) -> Limits:
    """Return the limits that apply to a requested lease: of all grants it would live on, the tighter one each time."""
    limits = Limits()
    for grant in policy.grants:
        if grant.actions.isdisjoint(request.actions) or grant.who.mismatch(facts):
            continue
        if any(covered([pattern.text for pattern in grant.paths.patterns], path) for path in request.paths):
            limits = limits.tightened(grant.limits)
    return limits
