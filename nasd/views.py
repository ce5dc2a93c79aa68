"""Values of the contexts -> the JSON documents of the API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interfaces.port import Document
from nasd.durations import render_time
from nasd.paths import render_path
from store.model import Branch, Change, Commit, Conflict, Side
from trust.leases import lease_state
from trust.model import BudgetKind, Bypass, Gate, Lease, LeaseState, Principal, Record, Scope, Token


def page(items: Iterable[Document], *, after: str | None = None, truncated: bool = False) -> Document:
    """Return a list document; `after` is the cursor of the next page when there is one."""
    return {"items": list(items), "next": after, "truncated": truncated}


def view_principal(principal: Principal, roles: frozenset[str]) -> Document:
    """Return the document of a principal."""
    return {
        "principal": principal.name,
        "kind": principal.kind.value,
        "disabled": principal.disabled,
        "created": render_time(principal.created),
        "roles": sorted(roles),
    }


def view_token(token: Token) -> Document:
    """Return the document of a token, without its secret."""
    return {
        "token": token.id,
        "principal": token.principal,
        "label": token.label,
        "created": render_time(token.created),
        "expires": render_time(token.expires),
        "revoked": render_time(token.revoked),
    }


def view_lease(lease: Lease, now: int) -> Document:
    """Return the document of a lease, without its secret."""
    return {
        "lease": lease.id,
        "run": lease.run,
        "principal": lease.principal,
        "on_behalf_of": lease.on_behalf_of,
        "state": lease_state(lease, now).value,
        **view_scope(lease.scope),
        "not_before": render_time(lease.scope.not_before),
        "expires": render_time(lease.scope.expires),
        "budgets": view_budgets(lease.scope.budgets, lease.used),
        "parent": lease.parent,
        "reason": lease.reason,
    }


def view_scope(scope: Scope) -> Document:
    """Return what a lease allows, with its end in seconds since the epoch; None where it is not limited."""
    return {
        "paths": list(scope.paths),
        "actions": sorted(action.value for action in scope.actions),
        "expires": scope.expires,
        "purpose": scope.purpose,
        "destinations": list(scope.destinations),
        "doors": None if scope.doors is None else sorted(scope.doors),
        "ceiling": None if scope.ceiling is None else str(scope.ceiling),
        "actors": list(scope.actors),
        "holder": scope.holder or None,
        "depth": scope.depth,
    }


def view_budgets(limits: Mapping[BudgetKind, int], used: Mapping[BudgetKind, int]) -> Document:
    """Return limit (None: unlimited) and use of every kind of budget."""
    return {kind.value: {"limit": limits.get(kind), "used": used.get(kind, 0)} for kind in BudgetKind}


def view_gate(gate: Gate, *, card: bool = False) -> Document:
    """Return the document of a gate, with its card when asked."""
    document: Document = {
        "gate": gate.id,
        "state": gate.state.value,
        "digest": gate.digest,
        "deadline": render_time(gate.deadline),
        "required_role": gate.required_role,
        "subject": gate.subject,
        "fallback": gate.fallback,
        "created": render_time(gate.created),
        "asked_by": gate.asked_by,
        "answered_by": gate.answered_by,
        "answered": render_time(gate.answered),
        "comment": gate.comment,
        "phase": gate.phase.value,
        "run": gate.run,
        "rule": gate.rule,
        "act": gate.act,
        "alike": gate.alike,
        "approvals": gate.approvals,
        "answers": [{"by": each.by, "approve": each.approve, "at": render_time(each.at), "comment": each.comment} for each in gate.answers],
        "excluded": list(gate.excluded),
        "use_within": gate.use_within,
        "usable_until": render_time(gate.usable_until),
        "standing": gate.standing,
        "successor": gate.successor,
        "acknowledged": render_time(gate.acknowledged),
        "closed": render_time(gate.closed),
        "outcome": gate.outcome,
    }
    return document | {"card": dict(gate.card)} if card else document


def view_bypass(bypass: Bypass, now: int) -> Document:
    """Return the document of a bypass."""
    live = bypass.ended is None and now < bypass.expires
    return {
        "bypass": bypass.id,
        "state": "live" if live else "ended" if bypass.ended is not None else "expired",
        "rule": bypass.rule,
        "policy": bypass.policy,
        "by": bypass.by,
        "reason": bypass.reason,
        "created": render_time(bypass.created),
        "expires": render_time(bypass.expires),
        "ended": render_time(bypass.ended),
    }


def view_record(record: Record) -> Document:
    """Return the document of a record."""
    return {
        "sequence": record.sequence,
        "time": render_time(record.time),
        "phase": record.phase.value,
        "kind": record.kind,
        "principal": record.principal,
        "run": record.run,
        "lease": record.lease,
        "body": dict(record.body),
        "refers": record.refers,
        "previous": record.previous,
        "hash": record.hash,
    }


def view_branch(branch: Branch) -> Document:
    """Return the document of a branch."""
    return {
        "branch": branch.name,
        "head": branch.head,
        "base": branch.base,
        "protected": branch.protected,
        "created": render_time(branch.created),
    }


def view_commit(commit: Commit) -> Document:
    """Return the document of a commit."""
    provenance = commit.note.provenance
    return {
        "commit": commit.id,
        "parents": list(commit.parents),
        "message": commit.note.message,
        "principal": provenance.principal,
        "on_behalf_of": provenance.on_behalf_of,
        "run": provenance.run,
        "lease": provenance.lease,
        "proposal": provenance.proposal,
        "when": render_time(commit.note.when),
        "author": commit.author,
    }


def view_change(change: Change, patch: bytes | None = None, *, patched: bool = False) -> Document:
    """Return the document of one difference; with `patched`, its patch too (None: binary or too large)."""
    document: Document = {
        "kind": change.kind.value,
        "path": render_path(change.path),
        "origin": render_path(change.origin) if change.origin is not None else None,
        "old_size": change.old.size if change.old else None,
        "new_size": change.new.size if change.new else None,
    }
    if patched:
        document["patch"] = patch.decode("utf-8", "backslashreplace") if patch is not None else None
    return document


def view_conflict(conflict: Conflict) -> Document:
    """Return the document of a conflict, every side named."""
    sides = {"base": conflict.base, "ours": conflict.ours, "theirs": conflict.theirs}
    return {"path": render_path(conflict.path), "why": conflict.why} | {name: _view_side(side) for name, side in sides.items()}


def _view_side(side: Side | None) -> Any:
    if side is None:
        return None
    return {"kind": side.kind.value, "executable": side.executable, "content": side.content, "size": side.size}


def lease_is_live(lease: Lease, now: int) -> bool:
    """Tell whether a lease counts at a time."""
    return lease_state(lease, now) is LeaseState.LIVE
