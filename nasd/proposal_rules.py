"""What a proposal is and what follows from what, without I/O.

1. A proposal whose branch moved is stale: what was judged is not what would be merged.
2. What a person judges, and what an answer binds: `nasd.proposal_cards`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nasd.checks import CheckResult
from store.model import Change, ChangeKind, CommitId, Conflict
from trust.model import ChangeFacts, Decision

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
    judged: Mapping[str, Any]
    """What a record keeps of the decision: `trust.facts.judged`."""


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


def describe_checks(results: Sequence[CheckResult]) -> tuple[Mapping[str, Any], ...]:
    """Return the results of checks as documents."""
    return tuple(
        {"id": result.id, "state": result.state, "required": result.required, "seconds": result.seconds, "output": result.output}
        for result in results
    )


def proposal_of(body: Mapping[str, Any]) -> Proposal:
    """Return the proposal that a document holds."""
    fields = dict(body)
    fields["twins"] = tuple(tuple(group) for group in fields["twins"])
    for name in ("checks", "conflicts"):
        fields[name] = tuple(fields[name])
    return Proposal(**fields)


def brief_of(proposal: Proposal) -> dict[str, Any]:
    """Return what the record keeps of a proposal."""
    names = ("proposal", "run", "branch", "target", "head", "base", "message", "files", "deletes", "bytes")
    return {name: getattr(proposal, name) for name in names}


def merge_message(proposal: Proposal) -> str:
    """Return the message of the commit that merges a proposal."""
    return f"Merge {proposal.branch}: {proposal.message}" if proposal.message else f"Merge {proposal.branch}"


def conflict_reason(weighed: Weighed) -> str:
    """Return why a proposal does not merge, in words."""
    count = len(weighed.conflicts)
    return f"{count} path{'s' if count > 1 else ''} changed on both sides in ways that do not combine"
