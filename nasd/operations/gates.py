"""Gates: list, show, wait, answer, take back; and the rules that ask nobody for a while."""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.bypasses import Bypasses
from nasd.desk import Desk
from nasd.operations.operation import (
    DURATION,
    FLAG,
    LIMIT,
    NAME,
    TEXT,
    TIME,
    Arguments,
    Operation,
    gives,
    gives_list,
    seconds,
    takes,
)
from nasd.operations.proposals import timed
from nasd.views import page, view_gate
from trust.model import Action, Digest, Gate, GateId, GatePhase, GateState, Identity

_WAIT = {"type": "integer", "minimum": 0, "maximum": 25, "description": "seconds to wait for the answer"}


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    state = GateState(arguments["state"]) if "state" in arguments else None
    run = desk.runs.find(arguments["run"]).run if "run" in arguments else None
    alike = Digest(arguments["alike"]) if "alike" in arguments else None
    found = desk.appliance.trust.questions.all(state, run=run, alike=alike)
    return _paged([view_gate(gate) for gate in found if _sees(desk, identity, gate)], arguments)


def _paged(gates: list[Document], arguments: Arguments) -> Document:
    """Return one page, in the order the gates were asked in; the cursor is the last gate seen."""
    start = next((index + 1 for index, gate in enumerate(gates) if gate["gate"] == arguments.get("cursor")), 0)
    shown = gates[start : start + int(arguments.get("limit", 1000))]
    more = start + len(shown) < len(gates)
    return page(shown, after=shown[-1]["gate"] if more and shown else None, truncated=more)


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    gate = _seen(desk, identity, arguments["gate"])
    if arguments.get("wait"):
        gate = desk.gates.wait(gate.id, arguments["wait"], until_closed=arguments.get("closed", False))
    return view_gate(gate, card=True)


def _approve(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return _answer(desk, identity, arguments, approve=True)


def _reject(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    return _answer(desk, identity, arguments, approve=False)


def _answer(desk: Desk, identity: Identity, arguments: Arguments, *, approve: bool) -> Document:
    gate = _seen(desk, identity, arguments["gate"])
    desk.require(identity, Action.ANSWER, f"answer {gate.id}")
    return _told(desk.gates.answer(gate.id, arguments["digest"], identity, arguments.get("comment", ""), approve=approve))


def _told(answered: Document) -> Document:
    if "created" in answered.get("result", {}):
        answered["result"] = timed(answered["result"])
    return answered


def _answer_alike(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ANSWER, "answer gates")
    answers = [(_seen(desk, identity, each["gate"]).id, each["digest"]) for each in arguments["answers"]]
    approve = arguments["verdict"] == "approve"
    answered = desk.gates.answer_alike(arguments["alike"], answers, identity, arguments.get("comment", ""), approve=approve)
    return page([_told(each) for each in answered])


def _withdraw(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    gate = _seen(desk, identity, arguments["gate"])
    if identity.lease is not None and gate.subject.startswith("proposal:"):
        desk.own_run(identity, gate.run, Action.PROPOSE)
    if identity.lease is None and identity.principal.name != gate.asked_by:
        if gate.run:
            desk.own_run(identity, gate.run, None)
        else:
            desk.require(identity, Action.ADMINISTER, f"take {gate.id} back")
    return desk.gates.withdraw(gate, identity, arguments.get("comment", ""))


def _sees(desk: Desk, identity: Identity, gate: Gate) -> bool:
    if identity.lease is not None:
        return bool(gate.run) and gate.run == identity.lease.run
    return gate.asked_by == identity.principal.name or desk.allows(identity, Action.OBSERVE) or desk.allows(identity, Action.ANSWER)


def _seen(desk: Desk, identity: Identity, name: str) -> Gate:
    gate = desk.appliance.trust.gate(GateId(name))
    if not _sees(desk, identity, gate):
        raise Fault(Kind.NOT_FOUND, f"{name}: no such gate", hint="`nas gate list` shows them")
    return gate


def _bypass(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "bypass a rule")
    return Bypasses(desk.appliance).open(identity, arguments["rule"], seconds(arguments["for"], "for"), arguments["reason"])


def _bypasses(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "list bypasses")
    return page(Bypasses(desk.appliance).all(live=arguments.get("live", False)))


def _end_bypass(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "end a bypass")
    return Bypasses(desk.appliance).end(identity, arguments["bypass"])


_STATE = {"enum": [state.value for state in GateState]}
_GATE = {
    "gate": NAME,
    "state": _STATE,
    "phase": {"enum": [phase.value for phase in GatePhase]},
    "digest": NAME,
    "alike": TEXT,
    "deadline": TIME,
    "required_role": NAME,
}
_BYPASS = {"bypass": NAME, "state": {"enum": ["live", "ended", "expired"]}, "rule": NAME, "by": NAME, "reason": TEXT, "expires": TIME}
_ANSWERS = {"type": "array", "items": takes({"gate": NAME, "digest": NAME}), "minItems": 1, "maxItems": 200}

OPERATIONS = (
    Operation(
        "gate.list",
        "GET",
        "/v1/gates",
        "List the questions for people",
        _list,
        takes(state=_STATE, run=NAME, alike=NAME, limit=LIMIT, cursor=NAME),
        gives_list(**_GATE),
    ),
    Operation(
        "gate.show",
        "GET",
        "/v1/gates/{gate}",
        "Show a gate with its card; with wait, once it is decided (with closed: carried out) or the time is over",
        _show,
        takes({"gate": NAME}, wait=_WAIT, closed=FLAG),
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
    Operation(
        "gate.answer",
        "POST",
        "/v1/gates/answers",
        "Answer gates that are alike, each by the digest of its own card",
        _answer_alike,
        takes({"alike": NAME, "answers": _ANSWERS, "verdict": {"enum": ["approve", "reject"]}}, comment=TEXT),
        gives(items={"type": "array", "items": gives(gate=NAME)}),
        effect=True,
    ),
    Operation(
        "gate.withdraw",
        "POST",
        "/v1/gates/{gate}/withdraw",
        "Take a question back before its act begins",
        _withdraw,
        takes({"gate": NAME}, comment=TEXT),
        gives(**_GATE),
        effect=True,
    ),
    Operation(
        "gate.bypass",
        "POST",
        "/v1/bypasses",
        "Have a rule ask nobody for a while; every act under it is recorded with it",
        _bypass,
        takes({"rule": NAME, "for": DURATION, "reason": NAME}),
        gives(**_BYPASS),
        effect=True,
        status=201,
    ),
    Operation(
        "gate.bypasses",
        "GET",
        "/v1/bypasses",
        "List the rules that ask nobody for a while",
        _bypasses,
        takes(live=FLAG),
        gives_list(**_BYPASS),
    ),
    Operation(
        "gate.bypass-end",
        "POST",
        "/v1/bypasses/{bypass}/end",
        "End a bypass",
        _end_bypass,
        takes({"bypass": NAME}),
        gives(**_BYPASS),
        effect=True,
    ),
)
