"""Proposals."""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.desk import Desk, limited
from nasd.durations import render_time
from nasd.operations.history import render_changes
from nasd.operations.operation import (
    COUNT,
    FLAG,
    LIMIT,
    MAYBE_TEXT,
    NAME,
    TEXT,
    TIME,
    Arguments,
    Operation,
    gives,
    gives_list,
    require_head,
    takes,
)
from nasd.proposal_rules import Proposal
from nasd.runs import MAIN
from nasd.views import page
from trust.model import Action, Identity

_DECISIONS = ["merged", "gated", "refused", "conflict", "merging"]
_STATES = ["merging", "gated", "merged", "refused", "conflict", "stale", "withdrawn"]


def _make(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.own_run(identity, arguments["run"], Action.PROPOSE)
    require_head(arguments, desk.appliance.engine.branch(run.branch).head)
    if arguments.get("target", MAIN) != MAIN:
        raise Fault(Kind.UNSUPPORTED, "proposals go to main", hint="leave --target out")
    if run.state != "active" and identity.lease is not None:
        raise Fault(Kind.CONFLICT, f"{run.run} is {run.state}", hint="the owner can still propose its branch")
    return timed(desk.proposals.propose(run, identity, arguments.get("message", "")))


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    state, run = arguments.get("state"), arguments.get("run")
    seen = {known.run for known in desk.visible_runs(identity)}
    chosen = [p for p in desk.proposals.all() if p.run in seen and state in (None, p.state) and run in (None, p.run, p.branch)]
    return limited([timed(desk.proposals.document(proposal)) for proposal in chosen], arguments, "proposal")


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return timed(desk.proposals.document(_seen(desk, identity, arguments["proposal"])))


def _diff(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    proposal = _seen(desk, identity, arguments["proposal"])
    return page(render_changes(desk, identity, desk.proposals.changes(proposal), patched=arguments.get("patch", False)))


def _withdraw(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    proposal = _seen(desk, identity, arguments["proposal"])
    desk.own_run(identity, proposal.run, Action.PROPOSE)
    return timed(desk.proposals.withdraw(proposal, identity, arguments.get("comment", "")))


def _seen(desk: Desk, identity: Identity, name: str) -> Proposal:
    proposal = desk.proposals.find(name)
    if not desk.sees_run(identity, desk.runs.find(proposal.run)):
        raise Fault(Kind.NOT_FOUND, f"{name}: no such proposal", hint="`nas proposal list` shows them")
    return proposal


def timed(document: Document) -> Document:
    """Return the document of a proposal with its times as text."""
    return document | {name: render_time(document[name]) for name in ("created", "decided")}


_PROPOSAL = {
    "proposal": NAME,
    "run": NAME,
    "decision": {"enum": _DECISIONS},
    "state": {"enum": _STATES},
    "gate": TEXT,
    "reason": TEXT,
    "policy": TEXT,
    "head": NAME,
    "files": COUNT,
    "created": TIME,
}

OPERATIONS = (
    Operation(
        "proposal.make",
        "POST",
        "/v1/proposals",
        "Propose a run's branch: commit, check, decide, and merge when the policy says so",
        _make,
        takes({"run": NAME}, message=TEXT, target=NAME, if_match=TEXT),
        gives(**_PROPOSAL),
        effect=True,
        status=201,
    ),
    Operation(
        "proposal.list",
        "GET",
        "/v1/proposals",
        "List proposals",
        _list,
        takes(state={"enum": _STATES}, run=NAME, limit=LIMIT, cursor=NAME),
        gives_list(**_PROPOSAL),
    ),
    Operation("proposal.show", "GET", "/v1/proposals/{proposal}", "Show a proposal", _show, takes({"proposal": NAME}), gives(**_PROPOSAL)),
    Operation(
        "proposal.diff",
        "GET",
        "/v1/proposals/{proposal}/diff",
        "Show what a proposal changes",
        _diff,
        takes({"proposal": NAME}, patch=FLAG),
        gives_list(kind=NAME, path=TEXT, origin=MAYBE_TEXT),
    ),
    Operation(
        "proposal.withdraw",
        "POST",
        "/v1/proposals/{proposal}/withdraw",
        "Take back a proposal that waits",
        _withdraw,
        takes({"proposal": NAME}, comment=TEXT),
        gives(**_PROPOSAL),
        effect=True,
    ),
)
