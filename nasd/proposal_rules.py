"""What a proposal is and what follows from what, without I/O.

1. A gate's digest covers exactly what its card shows: the head, every changed path with its content before and after, what
   the target holds where both sides changed, the checks and the policy.
2. A proposal whose branch moved is stale: what was judged is not what would be merged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nasd.checks import CheckResult
from nasd.paths import render_path
from nasd.runs import Run
from store.model import Change, ChangeKind, CommitId, Conflict, Side
from trust.model import ChangeFacts, Decision

CARD_PATHS = 200
"""How many paths a card lists; the digest covers all of them."""

OPEN_STATES = frozenset({"merging", "gated"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """An Agent PR. `state` is merging, gated, merged, refused, conflict, stale or withdrawn; the times are seconds."""

    proposal: str
    run: str
    branch: str
    target: str
    head: str
    base: str
    message: str
    created: int
    state: str
    reason: str = ""
    policy: str = ""
    gate: str = ""
    commit: str = ""
    decided: int | None = None
    files: int = 0
    deletes: int = 0
    bytes: int = 0
    twins: tuple[tuple[str, ...], ...] = ()
    checks: tuple[Mapping[str, Any], ...] = ()
    conflicts: tuple[Mapping[str, Any], ...] = ()
    reads: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A proposal with everything that bears on it at one moment: the target's head, the card and the decision."""

    target_head: CommitId
    changes: Sequence[Change]
    conflicts: Sequence[Conflict]
    card: Mapping[str, Any]
    decision: Decision


def change_facts(changes: Sequence[Change], twins: int, checks: str) -> ChangeFacts:
    """Return what the policy may look at. A rename counts as a change of both its paths."""
    paths = {change.path for change in changes} | {change.origin for change in changes if change.origin is not None}
    deleted = {change.path for change in changes if change.kind is ChangeKind.DELETED}
    size = sum(change.new.size or 0 for change in changes if change.new is not None and change.kind is not ChangeKind.RENAMED)
    return ChangeFacts(
        paths=tuple(sorted(paths)),
        deleted=tuple(sorted(deleted)),
        files=len(changes),
        deletes=len(deleted),
        bytes=size,
        twins=twins,
        checks=checks,
    )


def make_card(
    run: Run, proposal: Proposal, changes: Sequence[Change], overlap: Sequence[Change], asked: Decision, policy: str
) -> dict[str, Any]:
    """Return what a person judges.

    `overlap` is what the target changed at the same paths since the branch left it, `asked` the decision without any
    gate, `policy` the hash of the policy.
    """
    listed = [_describe(change) for change in changes]
    return {
        "what": f"merge {proposal.branch} into {proposal.target}",
        "who": run.role,
        "on_behalf_of": run.owner,
        "why": proposal.message,
        "purpose": run.purpose,
        "asks": asked.reason,
        "rule": f"{asked.rule} ({asked.position})",
        "proposal": proposal.proposal,
        "run": run.run,
        "head": proposal.head,
        "target": proposal.target,
        "files": proposal.files,
        "deletes": proposal.deletes,
        "bytes": proposal.bytes,
        "changes": listed[:CARD_PATHS],
        "changes_beyond": max(0, len(listed) - CARD_PATHS),
        "content": _identities(changes),
        "overlap": _identities(overlap),
        "twins": [list(group) for group in proposal.twins],
        "checks": [{"id": check["id"], "state": check["state"], "required": check["required"]} for check in proposal.checks],
        "policy": policy,
        "on_approve": f"the changes are merged into {proposal.target}",
        "on_reject": "nothing is merged; the branch stays as it is",
    }


def overlapping(changes: Iterable[Change], target_changes: Iterable[Change]) -> list[Change]:
    """Return the changes of the target at paths that the proposal changes too, ordered by path."""
    touched = {path for change in changes for path in (change.path, change.origin) if path is not None}
    return sorted(
        (change for change in target_changes if change.path in touched or change.origin in touched), key=lambda change: change.path
    )


def describe_checks(results: Sequence[CheckResult]) -> tuple[Mapping[str, Any], ...]:
    """Return the results of checks as documents."""
    return tuple(
        {"id": result.id, "state": result.state, "required": result.required, "seconds": result.seconds, "output": result.output}
        for result in results
    )


def _describe(change: Change) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": change.kind.value, "path": render_path(change.path)}
    if change.origin is not None:
        described["origin"] = render_path(change.origin)
    if change.new is not None:
        described["size"] = change.new.size
    return described


def _identities(changes: Sequence[Change]) -> str:
    lines = (f"{change.kind.value} {render_path(change.path)} {_identity(change.old)} {_identity(change.new)}" for change in changes)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _identity(side: Side | None) -> str:
    return f"{side.content}{'*' if side.executable else ''}" if side else "-"
