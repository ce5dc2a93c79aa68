"""What a lease allows, when it counts, and how it narrows.

1. A lease's time is half-open: it counts from `not_before` and no longer at `expires`.
2. Narrowing never widens, in any dimension. Where two sets of patterns overlap in a way no pattern can say, the overlap is left out.
3. What nobody may do is said as a scope too: no paths, no doors, `NOBODY` as holder, a depth below 0.
4. Comparing patterns costs bounded effort: a token whose narrowings take more is refused, whoever made it.
5. Pure: `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

from trust.caveats import DOORS, MAX_DEPTH, MAX_PURPOSE, Caveat, is_actor, is_thumbprint
from trust.errors import HolderUnproven, LeaseExpired, LeaseRevoked, PatternInvalid, ScopeInvalid, Widened, WrongDoor
from trust.labels import WORST, Label, Origin, Sensitivity, parse_label
from trust.model import LEASABLE, Action, BudgetKind, Lease, LeaseId, LeaseState, Scope
from trust.policy.covering import Effort, covered
from trust.policy.patterns import parse_pattern

MAX_PATHS = 256
"""The most path patterns in a lease, and the most destinations."""
MAX_ACTORS = 32
"""The most actors in the chain of a lease."""
NARROWING_EFFORT = 1_000
"""How much comparing of patterns one token may cause."""
ASKING_EFFORT = 100_000
"""How much comparing of patterns one request to narrow may cause."""
NOBODY = "nobody"
"""The holder of a lease that was bound to two keys: no key has this thumbprint."""
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


def actors_of(leases: Iterable[Lease]) -> tuple[str, ...]:
    """Return whoever one of the leases was handed on to, each once: any of them may have done what is asked about."""
    return tuple(dict.fromkeys(actor for lease in leases for actor in lease.scope.actors))


def require_usable(lease: Lease, now: int) -> None:
    """Raise `LeaseRevoked` or `LeaseExpired` for a lease that has ended; one that has not begun passes."""
    state = lease_state(lease, now)
    if state is LeaseState.REVOKED:
        raise LeaseRevoked(lease.id, f"the lease was revoked: {lease.reason}" if lease.reason else "the lease was revoked")
    if state is LeaseState.EXPIRED:
        raise LeaseExpired(lease.id, "the lease has expired")


def require_presented(scope: Scope | None, door: str, proofs: Set[str]) -> None:
    """Return when a credential of this scope counts at a door, shown by who proved to have these keys. None: nothing restricts it.

    `door` is empty inside of the appliance, where a credential that was shown at a door before goes on. Raises `WrongDoor`,
    `HolderUnproven`.
    """
    if scope is None:
        return
    if scope.doors is not None and door and door not in scope.doors:
        raise WrongDoor(door, f"the lease counts at {', '.join(sorted(scope.doors)) or 'no door'} only")
    if scope.holder and door and scope.holder not in proofs:
        raise HolderUnproven(door, f"the lease is bound to the key {scope.holder}, and the request does not prove to have it")


def check_scope(scope: Scope, now: int) -> None:
    """Refuse a scope that no lease can have. Raises `ScopeInvalid`."""
    if not scope.paths or not scope.actions:
        raise ScopeInvalid("lease", "needs at least one path and one action")
    if max(len(scope.paths), len(scope.destinations)) > MAX_PATHS:
        raise ScopeInvalid("lease", f"more than {MAX_PATHS} paths or destinations")
    beyond = sorted(action.value for action in scope.actions - LEASABLE)
    if beyond:
        raise ScopeInvalid(beyond[0], "no lease carries this action")
    if scope.expires <= max(now, scope.not_before):
        raise ScopeInvalid("lease", "it would end before it begins")
    if len(scope.purpose) > MAX_PURPOSE:
        raise ScopeInvalid("purpose", f"longer than {MAX_PURPOSE} characters")
    _check_parts(scope)
    _check_delegation(scope)


def _check_parts(scope: Scope) -> None:
    for kind, amount in scope.budgets.items():
        if not 0 <= amount <= LARGEST_AMOUNT:
            raise ScopeInvalid(kind.value, f"{amount} is no budget")
    for text in (*scope.paths, *scope.destinations):
        try:
            parse_pattern(text)
        except PatternInvalid as error:
            raise ScopeInvalid(text, error.why) from error


def _check_delegation(scope: Scope) -> None:
    if scope.doors is not None and not (scope.doors and scope.doors <= DOORS):
        raise ScopeInvalid("doors", f"some of {', '.join(sorted(DOORS))}, and at least one")
    if len(scope.actors) > MAX_ACTORS or not all(map(is_actor, scope.actors)):
        raise ScopeInvalid("actors", f"at most {MAX_ACTORS} names that can be read on one line")
    if scope.holder and not is_thumbprint(scope.holder):
        raise ScopeInvalid("holder", "write the thumbprint of a key as ssh:SHA256:... or x5t:...")
    if scope.depth is not None and not 0 <= scope.depth <= MAX_DEPTH:
        raise ScopeInvalid("depth", f"a number from 0 to {MAX_DEPTH}")


def require_divisible(scope: Scope) -> None:
    """Return when a lease may hang below one of this scope. Raises `Widened`."""
    if scope.depth is not None and scope.depth < 1:
        raise Widened("depth", "the lease may not be narrowed any further")


def narrow_scope(parent: Scope, wanted: Scope) -> Scope:
    """Return `wanted` with what it leaves open taken from the parent (budgets, purpose, doors, ceiling, actors, holder, depth).

    Raises `Widened` naming the first dimension in which `wanted` goes beyond the parent, `ScopeInvalid` for patterns that take too much
    effort to compare.
    """
    require_divisible(parent)
    _check_patterns(parent, wanted)
    beyond = sorted(action.value for action in wanted.actions - parent.actions)
    if beyond:
        raise Widened(beyond[0], "beyond the actions of the lease it would come from")
    if wanted.expires > parent.expires or wanted.not_before < parent.not_before:
        raise Widened("lease", "beyond the time of the lease it would come from")
    for kind, amount in parent.budgets.items():
        if wanted.budgets.get(kind, amount) > amount:
            raise Widened(kind.value, f"beyond the budget {amount} of the lease it would come from")
    return Scope(
        wanted.paths,
        wanted.actions,
        wanted.not_before,
        wanted.expires,
        wanted.purpose or parent.purpose,
        {**parent.budgets, **wanted.budgets},
        wanted.destinations,
        _narrow_doors(parent.doors, wanted.doors),
        _narrow_ceiling(parent.ceiling, wanted.ceiling),
        _narrow_actors(parent.actors, wanted.actors),
        _narrow_holder(parent.holder, wanted.holder),
        _narrow_depth(parent.depth, wanted.depth),
    )


def _check_patterns(parent: Scope, wanted: Scope) -> None:
    effort = Effort(ASKING_EFFORT)
    if max(len(wanted.paths), len(wanted.destinations)) > MAX_PATHS:
        raise ScopeInvalid("lease", f"more than {MAX_PATHS} paths or destinations")
    for path in wanted.paths:
        if not covered(parent.paths, path, effort):
            raise Widened(path, "beyond the paths of the lease it would come from")
    for destination in wanted.destinations:
        if not covered(parent.destinations, destination, effort):
            raise Widened(destination, "beyond the destinations of the lease it would come from")


def _narrow_doors(parent: frozenset[str] | None, wanted: frozenset[str] | None) -> frozenset[str] | None:
    if parent is not None and wanted is not None and not wanted <= parent:
        raise Widened(min(wanted - parent), "beyond the doors of the lease it would come from")
    return parent if wanted is None else wanted


def _narrow_ceiling(parent: Label | None, wanted: Label | None) -> Label | None:
    if parent is not None and wanted is not None and not wanted.within(parent):
        raise Widened(wanted, f"beyond the ceiling {parent} of the lease it would come from")
    return parent if wanted is None else wanted


def _narrow_actors(parent: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    if wanted and wanted[: len(parent)] != parent:
        raise Widened("actors", "a chain of actors is only ever added to")
    return wanted or parent


def _narrow_holder(parent: str, wanted: str) -> str:
    if parent and wanted and wanted != parent:
        raise Widened("holder", "the lease it would come from is bound to another key")
    return wanted or parent


def _narrow_depth(parent: int | None, wanted: int | None) -> int | None:
    if parent is None:
        return wanted
    if wanted is not None and wanted >= parent:
        raise Widened("depth", f"beyond the {parent - 1} that the lease it would come from leaves")
    return parent - 1 if wanted is None else wanted


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
    return caveat | _delegation_between(parent, child)


def _delegation_between(parent: Scope, child: Scope) -> dict[str, Any]:
    caveat: dict[str, Any] = {}
    if child.destinations != parent.destinations:
        caveat["dst"] = list(child.destinations)
    if child.doors is not None and child.doors != parent.doors:
        caveat["aud"] = sorted(child.doors)
    if child.ceiling is not None and child.ceiling != parent.ceiling:
        caveat["lab"] = {"origin": child.ceiling.origin.name.lower(), "sensitivity": child.ceiling.sensitivity.name.lower()}
    if child.actors != parent.actors:
        caveat["who"] = list(child.actors[len(parent.actors) :])
    if child.holder != parent.holder:
        caveat["cnf"] = child.holder
    if child.depth is not None and child.depth != _narrow_depth(parent.depth, None):
        caveat["dep"] = child.depth
    return caveat


def apply_caveat(scope: Scope, caveat: Caveat, effort: Effort | None = None) -> Scope:
    """Return the meet of a scope and a caveat: never more than the scope, whatever the caveat says.

    Raises `ScopeInvalid` when the patterns take more effort to compare than there is.
    """
    budgets = dict(scope.budgets)
    for name, amount in caveat.get("bud", {}).items():
        kind = BudgetKind(name)
        budgets[kind] = min(amount, budgets.get(kind, amount))
    return Scope(
        paths=meet_patterns(scope.paths, tuple(caveat["p"]), effort) if "p" in caveat else scope.paths,
        actions=scope.actions & {Action(name) for name in caveat["a"]} if "a" in caveat else scope.actions,
        not_before=max(scope.not_before, caveat.get("nbf", scope.not_before)),
        expires=min(scope.expires, caveat.get("exp", scope.expires)),
        purpose=caveat.get("pur", scope.purpose),
        budgets=budgets,
        destinations=meet_patterns(scope.destinations, tuple(caveat["dst"]), effort) if "dst" in caveat else scope.destinations,
        doors=_meet_doors(scope.doors, caveat.get("aud")),
        ceiling=_meet_ceiling(scope.ceiling, caveat.get("lab")),
        actors=(*scope.actors, *caveat.get("who", ())),
        holder=_meet_holder(scope.holder, caveat.get("cnf", "")),
        depth=_meet_depth(scope.depth, caveat.get("dep")),
    )


def _meet_doors(doors: frozenset[str] | None, named: list[str] | None) -> frozenset[str] | None:
    if named is None:
        return doors
    return frozenset(named) if doors is None else doors & frozenset(named)


def _meet_ceiling(ceiling: Label | None, named: dict[str, str] | None) -> Label | None:
    if named is None:
        return ceiling
    lower = parse_label(named.get("origin"), named.get("sensitivity"), WORST)
    if ceiling is None:
        return lower
    return Label(Origin(min(ceiling.origin, lower.origin)), Sensitivity(min(ceiling.sensitivity, lower.sensitivity)))


def _meet_holder(holder: str, named: str) -> str:
    return holder or named if not (holder and named) or holder == named else NOBODY


def _meet_depth(depth: int | None, named: int | None) -> int | None:
    left = [number for number in (None if depth is None else depth - 1, named) if number is not None]
    return min(left, default=None)


def meet_patterns(one: tuple[str, ...], other: tuple[str, ...], effort: Effort | None = None) -> tuple[str, ...]:
    """Return patterns for what both sets match; an overlap that is not one of the given patterns is left out.

    Raises `ScopeInvalid` when that takes more effort than there is.
    """
    both = [text for text in other if covered(one, text, effort)]
    both += [text for text in one if covered(other, text, effort)]
    return tuple(dict.fromkeys(both))
