"""Proposals and gates."""

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
from nasd.views import page, view_gate
from trust.model import Action, Gate, GateId, GateState, Identity

_DECISIONS = ["merged", "gated", "refused", "conflict", "merging"]
_STATES = ["merging", "gated", "merged", "refused", "conflict", "stale", "withdrawn"]


def _make(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.own_run(identity, arguments["run"], Action.PROPOSE)
    require_head(arguments, desk.appliance.engine.branch(run.branch).head)
    if arguments.get("target", MAIN) != MAIN:
        raise Fault(Kind.UNSUPPORTED, "proposals go to main", hint="leave --target out")
    if run.state != "active" and identity.lease is not None:
        raise Fault(Kind.CONFLICT, f"{run.run} is {run.state}", hint="the owner can still propose its branch")
    return _timed(desk.proposals.propose(run, identity, arguments.get("message", "")))


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    state, run = arguments.get("state"), arguments.get("run")
    seen = {known.run for known in desk.visible_runs(identity)}
    chosen = [p for p in desk.proposals.all() if p.run in seen and state in (None, p.state) and run in (None, p.run, p.branch)]
    return limited([_timed(desk.proposals.document(proposal)) for proposal in chosen], arguments, "proposal")


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return _timed(desk.proposals.document(_seen(desk, identity, arguments["proposal"])))


def _diff(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    proposal = _seen(desk, identity, arguments["proposal"])
    return page(render_changes(desk, identity, desk.proposals.changes(proposal), patched=arguments.get("patch", False)))


def _withdraw(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    proposal = _seen(desk, identity, arguments["proposal"])
    desk.own_run(identity, proposal.run, Action.PROPOSE)
    return _timed(desk.proposals.withdraw(proposal, identity, arguments.get("comment", "")))


def _seen(desk: Desk, identity: Identity, name: str) -> Proposal:
    proposal = desk.proposals.find(name)
    if not desk.sees_run(identity, desk.runs.find(proposal.run)):
        raise Fault(Kind.NOT_FOUND, f"{name}: no such proposal", hint="`nas proposal list` shows them")
    return proposal


def _timed(document: Document) -> Document:
    return document | {name: render_time(document[name]) for name in ("created", "decided")}


def _gates(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    state = GateState(arguments["state"]) if "state" in arguments else None
    gates = [gate for gate in desk.appliance.trust.gates(state) if _sees_gate(desk, identity, gate)]
    if "run" in arguments:
        wanted = {f"proposal:{p.proposal}" for p in desk.proposals.all() if arguments["run"] in (p.run, p.branch)}
        gates = [gate for gate in gates if gate.subject in wanted]
    return limited([view_gate(gate) for gate in gates], arguments, "gate")


def _gate(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return view_gate(_seen_gate(desk, identity, arguments["gate"]), card=True)


def _approve(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return _answer(desk, identity, arguments, approve=True)


def _reject(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return _answer(desk, identity, arguments, approve=False)


def _answer(desk: Desk, identity: Identity, arguments: Arguments, *, approve: bool) -> Document:
    gate = _seen_gate(desk, identity, arguments["gate"])
    desk.require(identity, Action.ANSWER, f"answer {gate.id}")
    answered = desk.gates.answer(gate.id, arguments["digest"], identity, arguments.get("comment", ""), approve=approve)
    if "created" in answered["result"]:
        answered["result"] = _timed(answered["result"])
    return answered


def _sees_gate(desk: Desk, identity: Identity, gate: Gate) -> bool:
    if identity.lease is None:
        return gate.asked_by == identity.principal.name or desk.allows(identity, Action.OBSERVE) or desk.allows(identity, Action.ANSWER)
    if not gate.subject.startswith("proposal:"):
        return False
    return desk.proposals.find(gate.subject.removeprefix("proposal:")).run == identity.lease.run


def _seen_gate(desk: Desk, identity: Identity, name: str) -> Gate:
    gate = desk.appliance.trust.gate(GateId(name))
    if not _sees_gate(desk, identity, gate):
        raise Fault(Kind.NOT_FOUND, f"{name}: no such gate", hint="`nas gate list` shows them")
    return gate


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
_GATE = {"gate": NAME, "state": {"enum": [state.value for state in GateState]}, "digest": NAME, "deadline": TIME, "required_role": NAME}

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
    Operation(
        "gate.list",
        "GET",
        "/v1/gates",
        "List the questions for people",
        _gates,
        takes(state={"enum": [state.value for state in GateState]}, run=NAME, limit=LIMIT, cursor=NAME),
        gives_list(**_GATE),
    ),
    Operation(
        "gate.show",
        "GET",
        "/v1/gates/{gate}",
        "Show a gate with its card",
        _gate,
        takes({"gate": NAME}),
        gives(card={"type": "object"}, **_GATE),
    ),
    Operation(
        "gate.approve",
        "POST",
        "/v1/gates/{gate}/approve",
        "Say yes to exactly what the card with this digest shows",
        _approve,
        takes({"gate": NAME, "digest": NAME}, comment=TEXT),
        gives(result={"type": "object"}, **_GATE),
        effect=True,
    ),
    Operation(
        "gate.reject",
        "POST",
        "/v1/gates/{gate}/reject",
        "Say no",
        _reject,
        takes({"gate": NAME, "digest": NAME}, comment=TEXT),
        gives(result={"type": "object"}, **_GATE),
        effect=True,
    ),
)
