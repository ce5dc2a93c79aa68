"""What a proposal's gate shows and what it binds. Pure.

1. A card is for judging in a minute: what, who, for whom, why, how large in numbers and in words, what was read, labels, checks, the rule
   that asks, and what follows from each answer and from none.
2. The act is what an approval releases: the head and its base, every changed path with its content before and after, what the target holds
   where both sides changed, the checks, labels and stale reads, the lease, the rule and the policy. Whoever proposes it again asks about
   the same act.
3. Two proposals are alike when the same rule asks about the same changes of the same target, whoever made them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nasd.durations import render_duration
from nasd.paths import render_path
from nasd.proposal_rules import Proposal
from nasd.runs import Run
from store.model import Change, ChangeKind, Side
from trust.model import Decision, Gate, GateState

CARD_PATHS = 200
"""How many paths a card lists; the digest covers all of them."""
_WORDS = {
    ChangeKind.ADDED: "adds",
    ChangeKind.MODIFIED: "changes",
    ChangeKind.DELETED: "deletes",
    ChangeKind.RENAMED: "renames",
}
_PLACES = 4
_BOUND = (
    *("what", "run", "lease", "head", "base", "target", "content", "overlap", "twins", "checks", "labels", "taint", "stale_reads"),
    *("rule", "policy", "policy_after"),
)
_LIKENESS = ("target", "content", "checks", "labels", "taint")


def make_card(
    run: Run,
    proposal: Proposal,
    changes: Sequence[Change],
    overlap: Sequence[Change],
    asked: Decision,
    policy: str,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a person judges.

    `overlap` is what the target changed at the same paths since the branch left it, `asked` the decision without any gate, `policy` the
    hash of the policy, `more` further facts, such as labels and taint.
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
        "lease": run.lease,
        "head": proposal.head,
        "base": proposal.base,
        "target": proposal.target,
        "files": proposal.files,
        "deletes": proposal.deletes,
        "bytes": proposal.bytes,
        "in_words": put_in_words(changes),
        "changes": listed[:CARD_PATHS],
        "changes_beyond": max(0, len(listed) - CARD_PATHS),
        "content": _identities(changes),
        "overlap": _identities(overlap),
        "overlap_paths": [render_path(change.path) for change in overlap[:CARD_PATHS]],
        "twins": [list(group) for group in proposal.twins],
        "checks": [{"id": check["id"], "state": check["state"], "required": check["required"]} for check in proposal.checks],
        "reads": dict(proposal.reads),
        "policy": policy,
        "on_approve": f"the changes are merged into {proposal.target}",
        "on_reject": "nothing is merged; the branch stays as it is",
        "on_silence": _on_silence(asked),
        **(more or {}),
    }


def _on_silence(asked: Decision) -> str:
    if asked.ask is None:
        return ""
    kept = "is withdrawn" if asked.ask.fallback == "withdraw" else "is refused"
    return f"after {render_duration(asked.ask.deadline)} the proposal {kept}; nothing is merged and the branch stays as it is"


def act_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return exactly what a card asks to do."""
    return {"verb": "merge"} | {name: card[name] for name in _BOUND if name in card}


def likeness_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes two cards the same to whoever judges them."""
    return {name: card[name] for name in _LIKENESS if name in card}


def put_in_words(changes: Sequence[Change]) -> str:
    """Return changes in a sentence: how many of which kind, and in which folders most of them are."""
    kinds = Counter(change.kind for change in changes)
    told = [f"{_WORDS[kind]} {count} file{'s' if count != 1 else ''}" for kind in ChangeKind if (count := kinds[kind])]
    places = Counter(_place(change.path) for change in changes)
    most = sorted(places.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{place} ({count})" if len(most) > 1 else place for place, count in most[:_PLACES])
    beyond = f" and {len(most) - _PLACES} more" if len(most) > _PLACES else ""
    return f"{', '.join(told)} in {named}{beyond}" if told else "changes nothing"


def _place(path: bytes) -> str:
    folder, _, _ = path.rpartition(b"/")
    return render_path(folder) + "/" if folder else "/"


def gate_reason(gate: Gate) -> str:
    """Return why a gate that was not approved, or not used, ends its proposal."""
    if gate.state is GateState.EXPIRED:
        return f"nobody with the role {gate.required_role} answered before the deadline: {gate.fallback}"
    if gate.state is GateState.WITHDRAWN:
        return f"the question was withdrawn: {gate.comment}"
    if gate.state is GateState.SUPERSEDED:
        hint = ": propose again" if gate.successor.startswith("commit:") else ""
        return f"superseded by {gate.successor}{hint}"
    if gate.state is GateState.LAPSED:
        return "the approval was not used in time: propose again"
    return f"{gate.answered_by} said no" + (f": {gate.comment}" if gate.comment else "")


def overlapping(changes: Sequence[Change], target_changes: Iterable[Change]) -> list[Change]:
    """Return the changes of the target at paths that the proposal changes too, ordered by path; where both made the same of it, nothing."""
    brought = {change.path: change.new for change in changes}
    touched = {path for change in changes for path in (change.path, change.origin) if path is not None}
    both = (change for change in target_changes if change.path in touched or change.origin in touched)
    differing = (change for change in both if change.origin is not None or change.path not in brought or change.new != brought[change.path])
    return sorted(differing, key=lambda change: change.path)


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
