"""Leases, their chains and their budgets as rows.

1. Every lease has a budget row of each kind, limited or not, so that a charge only ever updates.
"""
# ruff: noqa: S608 - what is put into statements are constants of this module; values are bound

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from trust.budgets import Account
from trust.canonical import canonical
from trust.caveats import Caveat
from trust.engines.sqlite.database import Database
from trust.errors import Taken, Unknown
from trust.labels import Label, Origin, Sensitivity
from trust.leases import Chain
from trust.model import Action, BudgetKind, Lease, LeaseId, PrincipalName, RunId, Scope

_LEASE = """SELECT id, run, principal, on_behalf_of, paths, actions, not_before, expires, purpose, created, parent, revoked, reason,
root, caveats, epoch, limits, (SELECT json_group_array(json_array(kind, most, used)) FROM budgets WHERE lease = leases.id) FROM leases"""
_UP = """WITH RECURSIVE up(id, parent, depth) AS (
    SELECT id, parent, 0 FROM leases WHERE id = ?
    UNION ALL SELECT leases.id, leases.parent, depth + 1 FROM leases JOIN up ON leases.id = up.parent
)"""
_DOWN = """WITH RECURSIVE down(id, depth) AS (
    VALUES(?, 0) UNION ALL SELECT leases.id, depth + 1 FROM leases JOIN down ON leases.parent = down.id
)"""


_ACTIONS = {action.value: action for action in Action}
_BUDGETS = {kind.value: kind for kind in BudgetKind}


class Leases:
    """See `trust.contract.LeaseRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, lease: Lease, chain: Chain) -> None:
        """See the contract."""
        try:
            self._database.change(
                """INSERT INTO leases(id, run, principal, on_behalf_of, paths, actions, not_before, expires, purpose, created, parent,
                revoked, reason, root, caveats, epoch, limits) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                _values(lease, chain),
            )
        except apsw.ConstraintError as error:
            raise Taken(lease.id, "there is a lease of this id, or its parent or a principal is missing") from error
        for kind in BudgetKind:
            limit, used = lease.scope.budgets.get(kind), lease.used.get(kind, 0)
            self._database.change("INSERT INTO budgets VALUES(?, ?, ?, ?)", (lease.id, kind.value, limit, used))

    def find(self, lease: LeaseId) -> tuple[Lease, Chain]:
        """See the contract."""
        rows = self._database.rows(f"{_LEASE} WHERE id = ?", (lease,))
        if not rows:
            raise Unknown(lease, "no such lease")
        row = rows[0]
        found, caveats = _lease(row)
        return found, Chain(LeaseId(row[13]), caveats, row[15])

    def all(self, run: RunId | None = None, holder: str | None = None) -> Sequence[Lease]:
        """See the contract."""
        condition = "(?1 IS NULL OR run = ?1) AND (?2 IS NULL OR principal = ?2 OR on_behalf_of = ?2)"
        if run is not None and holder is None:
            condition = "run = ?1 AND ?2 IS NULL"  # for the index
        return [_lease(row)[0] for row in self._database.rows(f"{_LEASE} WHERE {condition} ORDER BY number", (run, holder))]

    def count(self, root: LeaseId) -> int:
        """See the contract."""
        return int(self._database.rows("SELECT count(*) FROM leases WHERE root = ?", (root,))[0][0])

    def descendants(self, lease: LeaseId) -> Sequence[LeaseId]:
        """See the contract."""
        return [LeaseId(row[0]) for row in self._database.rows(f"{_DOWN} SELECT id FROM down ORDER BY depth, id", (lease,))]

    def revoke(self, leases: Sequence[LeaseId], reason: str, now: int) -> Sequence[LeaseId]:
        """See the contract."""
        statement = "UPDATE leases SET revoked = ?, reason = ? WHERE id = ? AND revoked IS NULL"
        return [lease for lease in leases if self._database.change(statement, (now, reason, lease))]

    def accounts(self, lease: LeaseId) -> Sequence[Account]:
        """See the contract."""
        statement = f"{_UP} SELECT budgets.lease, kind, most, used FROM up JOIN budgets ON budgets.lease = up.id ORDER BY depth, kind"
        rows = self._database.rows(statement, (lease,))
        return [Account(LeaseId(found), BudgetKind(kind), limit, used) for found, kind, limit, used in rows]

    def add_used(self, leases: Iterable[LeaseId], amounts: Mapping[BudgetKind, int]) -> None:
        """See the contract."""
        statement = "UPDATE budgets SET used = max(0, used + ?) WHERE lease = ? AND kind = ?"
        values = [(amount, lease, kind.value) for lease in leases for kind, amount in amounts.items()]
        self._database.change_many(statement, values)

    def last_key_epoch(self) -> int:
        """See the contract."""
        return int(self._database.rows("SELECT coalesce(max(epoch), 0) FROM leases")[0][0])


def _values(lease: Lease, chain: Chain) -> tuple[Any, ...]:
    scope = lease.scope
    return (
        *(lease.id, lease.run, lease.principal, lease.on_behalf_of),
        *(canonical(list(scope.paths)), canonical(sorted(action.value for action in scope.actions))),
        *(scope.not_before, scope.expires, scope.purpose, lease.created, lease.parent, lease.revoked, lease.reason),
        *(chain.root, canonical(list(chain.caveats)), chain.epoch, canonical(_limits(scope))),
    )


def _limits(scope: Scope) -> dict[str, Any]:
    """Return what most leases leave open and have no column for; what this one leaves open is not in it."""
    limits: dict[str, Any] = {}
    if scope.destinations:
        limits["destinations"] = list(scope.destinations)
    if scope.doors is not None:
        limits["doors"] = sorted(scope.doors)
    if scope.ceiling is not None:
        limits["ceiling"] = [int(scope.ceiling.origin), int(scope.ceiling.sensitivity)]
    if scope.actors:
        limits["actors"] = list(scope.actors)
    if scope.holder:
        limits["holder"] = scope.holder
    if scope.depth is not None:
        limits["depth"] = scope.depth
    return limits


def _lease(row: tuple[Any, ...]) -> tuple[Lease, tuple[Caveat, ...]]:
    lease, run, principal, owner, paths, actions, not_before, expires, purpose, created, parent, revoked, reason = row[:13]
    # One text is read faster than five.
    paths, actions, caveats, limits, budgets = json.loads(f"[{paths},{actions},{row[14]},{row[16]},{row[17]}]")
    scope = Scope(
        paths=tuple(paths),
        actions=frozenset(_ACTIONS[action] for action in actions),
        not_before=not_before,
        expires=expires,
        purpose=purpose,
        budgets={_BUDGETS[kind]: limit for kind, limit, _ in budgets if limit is not None},
        destinations=tuple(limits.get("destinations", ())),
        doors=frozenset(limits["doors"]) if "doors" in limits else None,
        ceiling=Label(Origin(limits["ceiling"][0]), Sensitivity(limits["ceiling"][1])) if "ceiling" in limits else None,
        actors=tuple(limits.get("actors", ())),
        holder=limits.get("holder", ""),
        depth=limits.get("depth"),
    )
    used = {_BUDGETS[kind]: amount for kind, _, amount in budgets if amount}
    parent_id = None if parent is None else LeaseId(parent)
    found = Lease(
        LeaseId(lease), RunId(run), PrincipalName(principal), PrincipalName(owner), scope, created, parent_id, revoked, reason, used
    )
    return found, tuple(caveats)
