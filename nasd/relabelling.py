"""What people do to labels: raising at once, lowering by asking.

1. A mark raises the label of every path of its pattern, from now on; a run that has read such a path before is not tainted by it.
2. Taking a mark away lowers, and so does an endorsement, which gives exactly these bytes at exactly this path another label. Both are a
   question for people, always: no grant, no role and no bypass stands in for the answer. Anybody who sees the file may ask.
3. What is released is exactly what was asked: verb, path and content (or pattern), the label before and after. When the label is another
   meanwhile, the question is superseded and nothing is lowered.
4. The approval is spent and the label lowered in one step, between intent and outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.asking import Asking
from nasd.authority import gather, policy_in_force
from nasd.faults import refusal
from nasd.manifest import words
from nasd.paths import parse_path, render_path
from nasd.wiring import Appliance
from trust.gates import Question, act_digest
from trust.labels import DEFAULT, Label, parse_label
from trust.ledger import LabelPart
from trust.model import Action, Ask, Denial, Effect, Gate, GatePhase, GateState, Identity
from trust.policy import decide
from trust.policy.decide import BUILT_IN, ENVELOPE_ASK
from trust.policy.rules import OWNER

ENDORSE, UNMARK = "label.endorse", "label.unmark"
LOWERING = ("endorse", "declassify")
"""The kinds of questions about lowering a label: by what is lowered, origin alone or sensitivity too."""
RULE = "lowered-label"
"""What asks when a label would be lowered, whatever the policy says."""
_BOUND = ("verb", "path", "content", "pattern", "before", "after")
_GONE = "none"
"""What a question says where no mark would be left."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Exact bytes at an exact path: their identity, their size, and the commit they were looked up in."""

    path: bytes
    content: bytes
    size: int
    commit: str


def act_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return exactly what a card asks to do."""
    return {name: card[name] for name in _BOUND if name in card}


def view_part(part: LabelPart) -> dict[str, str]:
    """Return one thing that is known of some bytes as a document."""
    return {"source": part.source, "place": part.place} | words(part.label)


class Relabelling:
    """Raises and lowers labels; carries out what was decided about lowering. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Work on the state of `appliance`."""
        self._appliance = appliance
        self._trust = appliance.trust
        self._ledger = appliance.trust.ledger
        self._asking = Asking(appliance)

    # -- raising ------------------------------------------------------------------------------------------------------

    def mark(self, identity: Identity | None, pattern: str, label: Label) -> Label:
        """Raise the label of every path of a pattern and return what the mark is now. Raises `PatternInvalid`, `Kind.INVALID`."""
        if label.within(DEFAULT):
            hint = "say --origin external or --sensitivity sensitive; nas label endorse lowers the label of exact bytes"
            raise Fault(Kind.INVALID, f"{label} is no more than what everything is", hint=hint)
        body = {"pattern": pattern, "label": str(label)}
        with recorded(self._trust, self._appliance.clock, "label.mark", identity, body):
            self._ledger.mark(pattern, label)
        return self._mark_of(pattern) or label

    # -- asking to lower ----------------------------------------------------------------------------------------------

    def ask_to_unmark(self, identity: Identity, pattern: str, why: str) -> Document:
        """Ask people to take a mark away and return the question. Raises `Kind.NOT_FOUND`."""
        before = self._mark_of(pattern)
        if before is None:
            raise Fault(Kind.NOT_FOUND, f"{pattern}: no such mark", hint="`nas label list` shows the marks")
        card = {
            "what": f"take away the mark {before} from {pattern}",
            "verb": UNMARK,
            "pattern": pattern,
            "before": str(before),
            "after": _GONE,
            "labels": words(before) | {"paths": [pattern]},
            "on_approve": f"what matches {pattern} has no more than what the policy says and what was noted of its bytes",
        }
        return self._ask(identity, f"declassify:{pattern}", card, why, None, before)

    def ask_to_endorse(self, identity: Identity, what: Bytes, origin: str | None, sensitivity: str | None, why: str) -> Document:
        """Ask people to give exact bytes a lower label and return the question. Raises `Kind.INVALID` for one that is not lower."""
        policy = policy_in_force(self._trust)
        before = self._ledger.label(policy, what.path, what.content)
        after = read_label(origin, sensitivity, before)
        shown = render_path(what.path)
        if after == before or not after.within(before):
            hint = "nas label show tells why; nas label mark raises a label"
            raise Fault(Kind.INVALID, f"{shown} is {before}: {after} is not lower", hint=hint)
        card = {
            "what": f"endorse {shown}: {before} becomes {after}",
            "verb": ENDORSE,
            "path": shown,
            "content": what.content.decode("ascii"),
            "before": str(before),
            "after": str(after),
            "size": {"files": 1, "bytes": what.size},
            "commit": what.commit,
            "labels": words(before) | {"paths": [shown]},
            "because": [view_part(part) for part in self._ledger.explain(policy, what.path, what.content)],
            "on_approve": f"exactly these bytes at exactly this path are {after}, on every branch; any other content is not",
        }
        kind = "declassify" if after.sensitivity < before.sensitivity else "endorse"
        return self._ask(identity, f"{kind}:{shown}", card, why, what.path, before)

    def _ask(self, identity: Identity, subject: str, facts: Mapping[str, Any], why: str, path: bytes | None, before: Label) -> Document:
        ask, rule, place = self._terms(identity, path, before)
        lease = identity.lease
        on_behalf_of = lease.on_behalf_of if lease else identity.principal.name
        actors = lease.scope.actors if lease else ()
        card = {
            "who": identity.principal.name,
            "on_behalf_of": on_behalf_of,
            "actors": list(actors),
            "why": why,
            "purpose": lease.scope.purpose if lease else "",
            "asks": "a label would be lowered",
            "rule": f"{rule} ({place})",
            "policy": policy_in_force(self._trust).hash,
            "on_reject": "the label stays",
            "on_silence": "the label stays",
            **facts,
        }
        question = Question(
            subject,
            act_of(card),
            card,
            ask,
            rule,
            identity.principal.name,
            run=lease.run if lease else "",
            on_behalf_of=on_behalf_of,
            actors=actors,
        )
        gate = self._asking.ask(question, identity)
        told = {name: card[name] for name in ("path", "pattern", "before", "after") if name in card}
        return {"decision": "gated", "gate": gate.id, "digest": gate.digest, "required_role": gate.required_role} | told

    def _terms(self, identity: Identity, path: bytes | None, before: Label) -> tuple[Ask, str, str]:
        """Return how people are asked, and by which rule: by a guard of the policy about ``endorse``, else by what is built in."""
        # Not by what a lease carries, since whoever works with one may ask all the same; nor by what is built in for the owner, whom a
        # rule refuses nothing here but asks as it asks everybody.
        asker = replace(identity, lease=None, roles=identity.roles - {OWNER})
        policy = policy_in_force(self._trust)
        decision = decide(policy, gather(asker, Action.ENDORSE, self._appliance.now(), path=path, label=before))
        refusing = {guard.id for guard in policy.refusals_of[Action.ENDORSE]}
        is_owner = identity.lease is None and OWNER in identity.roles
        if decision.effect is Effect.DENY and (decision.denial is Denial.DISABLED or (decision.rule in refusing and not is_owner)):
            raise refusal(decision, "lower a label")
        if decision.effect is Effect.GATE and decision.ask is not None:
            return decision.ask, decision.rule, str(decision.position)
        return ENVELOPE_ASK, RULE, str(BUILT_IN)

    # -- carrying out -------------------------------------------------------------------------------------------------

    def carry_out(self, gate: Gate, identity: Identity | None) -> Document:
        """Lower what an approved question was about. Repeats change nothing."""
        if gate.state is not GateState.APPROVED:
            return {"decision": gate.state.value}
        if gate.phase is not GatePhase.DECIDED:
            return {"decision": gate.outcome or "lowered"}  # taken over and lowered in one step
        act = act_of(gate.card)
        with recorded(self._trust, self._appliance.clock, str(act["verb"]), identity, act | {"gate": gate.id}) as outcome:
            with self._trust.transaction():
                stands = self._standing(gate) == act["before"]
                self._asking.acknowledge(gate, act_digest(gate.subject, act), identity)
                if stands:
                    self._lower(act)
            decision = "lowered" if stands else "stale"
            outcome["result"] = "done" if stands else "stale"
        return {"decision": decision} | act

    def successor(self, gate: Gate) -> str:
        """Return empty while the label is what the question says, else what it is now."""
        now = self._standing(gate)
        return "" if now == gate.card["before"] else f"label:{now}"

    def _standing(self, gate: Gate) -> str:
        """Return the label that would be lowered, as it is now."""
        card = gate.card
        if card["verb"] == UNMARK:
            return str(self._mark_of(str(card["pattern"])) or _GONE)
        path, content = parse_path(str(card["path"])), str(card["content"]).encode("ascii")
        return str(self._ledger.label(policy_in_force(self._trust), path, content))

    def _lower(self, act: Mapping[str, Any]) -> None:
        if act["verb"] == UNMARK:
            self._ledger.unmark(str(act["pattern"]))
            return
        origin, _, sensitivity = str(act["after"]).partition("/")
        self._ledger.endorse(parse_path(str(act["path"])), str(act["content"]).encode("ascii"), parse_label(origin, sensitivity))

    def _mark_of(self, pattern: str) -> Label | None:
        return next((mark.label for mark in self._ledger.marks() if mark.pattern == pattern), None)


def read_label(origin: str | None, sensitivity: str | None, otherwise: Label) -> Label:
    """Return the label of two words of which at least one is given. Raises `Kind.INVALID`."""
    if origin is None and sensitivity is None:
        raise Fault(Kind.INVALID, "no label is named", hint="say --origin owner|internal|external, --sensitivity public|internal|sensitive")
    return parse_label(origin, sensitivity, otherwise)
