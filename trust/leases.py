"""What a lease allows, when it counts, and how it narrows.

1. A lease's time is half-open: it counts from `not_before` and no longer at `expires`.
2. Narrowing never widens, in any dimension. Where two sets of path patterns overlap in a way no pattern can say, the overlap is left out.
3. Pure: `now` is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trust.errors import LeaseExpired, LeaseRevoked, PatternInvalid, ScopeInvalid, Widened
from trust.model import LEASABLE, Action, BudgetKind, Lease, LeaseId, LeaseState, Scope
from trust.policy.patterns import covered, parse_pattern
from trust.tokens import MAX_PURPOSE, Caveat

MAX_PATHS = 256
"""The most path patterns in a lease."""
LARGEST_AMOUNT = 1 << 62
"""No budget and no charge is larger."""


@dataclass(frozen=True, slots=True)
class Chain:
    """How the secret of a lease is computed: from the root's key of an epoch, through these caveats."""

    root: LeaseId
    caveats: tuple[Caveat, ...]
    epoch: int


def lease_state(lease: Lease, now: int) -> LeaseState:
    """Return whether the lease counts at `now`."""
    if lease.revoked is not None:
        return LeaseState.REVOKED
    if now >= lease.scope.expires:
        return LeaseState.EXPIRED
    return LeaseState.PENDING if now < lease.scope.not_before else LeaseState.LIVE


def require_usable(lease: Lease, now: int) -> None:
    """Raise `LeaseRevoked` or `LeaseExpired` for a lease that has ended; one that has not begun passes."""
    state = lease_state(lease, now)
    if state is LeaseState.REVOKED:
        raise LeaseRevoked(lease.id, f"the lease was revoked: {lease.reason}" if lease.reason else "the lease was revoked")
    if state is LeaseState.EXPIRED:
        raise LeaseExpired(lease.id, "the lease has expired")


def check_scope(scope: Scope, now: int) -> None:
    """Refuse a scope that no lease can have. Raises `ScopeInvalid`."""
    if not scope.paths or not scope.actions:
        raise ScopeInvalid("lease", "needs at least one path and one action")
    if len(scope.paths) > MAX_PATHS:
        raise ScopeInvalid("lease", f"more than {MAX_PATHS} paths")
    beyond = sorted(action.value for action in scope.actions - LEASABLE)
    if beyond:
        raise ScopeInvalid(beyond[0], "no lease carries this action")
    if scope.expires <= max(now, scope.not_before):
        raise ScopeInvalid("lease", "it would end before it begins")
    if len(scope.purpose) > MAX_PURPOSE:
        raise ScopeInvalid("purpose", f"longer than {MAX_PURPOSE} characters")
    _check_parts(scope)


def _check_parts(scope: Scope) -> None:
    for kind, amount in scope.budgets.items():
        if not 0 <= amount <= LARGEST_AMOUNT:
            raise ScopeInvalid(kind.value, f"{amount} is no budget")
    for text in scope.paths:
        try:
            parse_pattern(text)
        except PatternInvalid as error:
            raise ScopeInvalid(text, error.why) from error


def narrow_scope(parent: Scope, wanted: Scope) -> Scope:
    """Return `wanted` with what it leaves open taken from the parent (budgets, purpose).

    Raises `Widened` naming the first dimension in which `wanted` goes beyond the parent.
    """
    for path in wanted.paths:
        if not covered(parent.paths, path):
            raise Widened(path, "beyond the paths of the lease it would come from")
    beyond = sorted(action.value for action in wanted.actions - parent.actions)
    if beyond:
        raise Widened(beyond[0], "beyond the actions of the lease it would come from")
    if wanted.expires > parent.expires or wanted.not_before < parent.not_before:
        raise Widened("lease", "beyond the time of the lease it would come from")
    for kind, amount in parent.budgets.items():
        if wanted.budgets.get(kind, amount) > amount:
            raise Widened(kind.value, f"beyond the budget {amount} of the lease it would come from")
    budgets = {**parent.budgets, **wanted.budgets}
    return Scope(wanted.paths, wanted.actions, wanted.not_before, wanted.expires, wanted.purpose or parent.purpose, budgets)


def caveat_between(parent: Scope, child: Scope) -> dict[str, Any]:
    """Return the caveat that turns the parent's scope into the child's, which must be narrower; its end is always in it."""
    caveat: dict[str, Any] = {"exp": child.expires}
    if child.paths != parent.paths:
        caveat["p"] = list(child.paths)
    if child.actions != parent.actions:
        caveat["a"] = sorted(action.value for action in child.actions)
    if child.not_before != parent.not_before:
        caveat["nbf"] = child.not_before
    budgets = {kind.value: amount for kind, amount in child.budgets.items() if parent.budgets.get(kind) != amount}
    if budgets:
        caveat["bud"] = budgets
    if child.purpose != parent.purpose:
        caveat["pur"] = child.purpose
    return caveat


def apply_caveat(scope: Scope, caveat: Caveat) -> Scope:
    """Return the meet of a scope and a caveat: never more than the scope, whatever the caveat says."""
    budgets = dict(scope.budgets)
    for name, amount in caveat.get("bud", {}).items():
        kind = BudgetKind(name)
        budgets[kind] = min(amount, budgets.get(kind, amount))
    return Scope(
        paths=meet_paths(scope.paths, tuple(caveat["p"])) if "p" in caveat else scope.paths,
        actions=scope.actions & {Action(name) for name in caveat["a"]} if "a" in caveat else scope.actions,
        not_before=max(scope.not_before, caveat.get("nbf", scope.not_before)),
        expires=min(scope.expires, caveat.get("exp", scope.expires)),
        purpose=caveat.get("pur", scope.purpose),
        budgets=budgets,
    )


def meet_paths(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return patterns for paths that both sets match; an overlap that is not one of the given patterns is left out."""
    both = [text for text in other if covered(one, text)]
    both += [text for text in one if covered(other, text)]
    return tuple(dict.fromkeys(both))
