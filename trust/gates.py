"""Questions for people: who may answer, what exactly was asked, and what an answer that came too late is worth.

1. A gate is bound to the digest of its card. An answer or a use that names another digest is about something else.
2. pending -> approved | rejected | expired | withdrawn, approved -> consumed. Nothing leaves a final state; the engine moves a gate by
   compare-and-set, so that exactly one answer counts and a timeout and an answer never both do.
3. A deadline is the first moment at which it is too late.
4. A run never answers: neither a lease nor an agent's own token. The role ``owner`` answers every gate.
5. Nobody answering is never an approval.
6. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from trust.canonical import canonical
from trust.errors import GateClosed, GateMismatch, NotEntitled, ScopeInvalid
from trust.model import Digest, Gate, GateState, Identity, PrincipalKind
from trust.policy.rules import OWNER

FALLBACKS = frozenset({"reject", "withdraw"})
"""What can happen when nobody answers."""


def card_digest(card: Mapping[str, Any]) -> Digest:
    """Return the digest of exactly what is shown."""
    return Digest(hashlib.sha256(b"nas-gate-v1\0" + canonical(card).encode()).hexdigest())


def check_question(required_role: str, deadline: int, fallback: str, now: int) -> None:
    """Refuse a gate that nobody could answer or whose fallback would approve. Raises `ScopeInvalid`."""
    if not required_role:
        raise ScopeInvalid("gate", "needs a role that may answer")
    if deadline <= now:
        raise ScopeInvalid("gate", "the deadline has passed already")
    if fallback not in FALLBACKS:
        raise ScopeInvalid(fallback, f"the fallback is one of {', '.join(sorted(FALLBACKS))}")


def check_answer(gate: Gate, digest: Digest, by: Identity, now: int) -> None:
    """Raise why this answer cannot count: `NotEntitled`, `GateMismatch` or `GateClosed`."""
    if by.lease is not None or by.principal.kind is PrincipalKind.AGENT:
        raise NotEntitled(gate.id, "a run does not answer questions about runs")
    if by.roles.isdisjoint({gate.required_role, OWNER}):
        raise NotEntitled(gate.id, f"{by.principal.name} lacks the role {gate.required_role}")
    check_digest(gate, digest)
    if gate.state is not GateState.PENDING or now >= gate.deadline:
        raise GateClosed(gate.id, describe_end(gate, now))


def check_digest(gate: Gate, digest: Digest) -> None:
    """Raise `GateMismatch` when something else was shown."""
    if gate.digest != digest:
        raise GateMismatch(gate.id, "the question is about something else than what was answered or done")


def describe_end(gate: Gate, now: int) -> str:
    """Return why a gate takes no answer, for people."""
    if gate.state is GateState.PENDING and now >= gate.deadline:
        return f"the deadline {gate.deadline} has passed"
    by = f" by {gate.answered_by}" if gate.answered_by else ""
    return f"already {gate.state.value}{by}"
