"""What is found out about policies -> JSON documents, and facts -> a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from interfaces.port import Document
from nasd.durations import render_duration
from nasd.paths import render_path
from trust.facts import describe_facts
from trust.labels import DEFAULT
from trust.model import Action, ChangeFacts, Decision, Effect, Facts, Scope
from trust.policy import Diagnostic, Explanation
from trust.policy.diffing import Difference, Direction, PolicyDiff
from trust.policy.reading import Severity
from trust.policy.replay import Replay
from trust.policy.rules import Check
from trust.policy.who_can import Answer

_NAMED = 5
"""How many paths of a change a sentence names."""


def view_findings(findings: Iterable[Diagnostic]) -> Document:
    """Return whether a policy may count (it has no errors), with every finding and its position."""
    found = list(findings)
    return {
        "ok": not any(each.severity is Severity.ERROR for each in found),
        "diagnostics": [
            {
                "severity": each.severity.value,
                "code": each.code,
                "message": each.message,
                "position": str(each.position),
                "hint": each.hint,
            }
            for each in found
        ],
    }


def view_explanation(explanation: Explanation) -> Document:
    """Return the document of a decision and every rule behind it."""
    return view_decision(explanation.decision) | {
        "considered": [
            {"rule": rule.rule, "kind": rule.kind, "position": str(rule.position), "matched": not rule.failed, "why": rule.failed}
            for rule in explanation.considered
        ],
    }


def view_decision(decision: Decision) -> Document:
    """Return the document of a decision."""
    return {
        "effect": decision.effect.value,
        "reason": decision.reason,
        "rule": decision.rule,
        "policy": _source(decision),
        "hint": decision.hint,
        "required_role": decision.ask.required_role if decision.ask else "",
    }


def view_diff(diff: PolicyDiff, most: int | None = None) -> Document:
    """Return what another policy would decide differently; of each direction the first `most`."""
    sections: Document = {}
    for direction in Direction:
        found = [each for each in diff.decisions if each.direction is direction]
        sections[direction.value] = [_view_difference(each) for each in found[:most]]
        sections[f"{direction.value}_beyond"] = len(found) - len(sections[direction.value])
    return {
        "equal": diff.equal,
        "complete": diff.complete,
        "cells": diff.cells,
        **sections,
        "rules": [{"rule": each.rule, "change": each.change, "what": list(each.what)} for each in diff.rules[:most]],
        "labels": [
            {"path": render_path(each.path), "from": str(each.before), "to": str(each.after), "names": each.names}
            for each in diff.labels[:most]
        ],
        "roles": [{"role": each.role, "added": list(each.added), "removed": list(each.removed)} for each in diff.roles[:most]],
        "checks": [
            {"check": (each.after or each.before).id, "from": _view_check(each.before), "to": _view_check(each.after)}  # type: ignore[union-attr]
            for each in diff.checks[:most]
        ],
    }


def _view_difference(difference: Difference) -> Document:
    before, after = difference.before, difference.after
    return {
        "action": difference.action.value,
        "from": before.effect.value,
        "to": after.effect.value,
        "was": _source(before),
        "by": _source(after),
        "reason": after.reason if after.effect is not Effect.ALLOW else before.reason,
        "asks": after.ask.required_role if after.ask else "",
        "example": tell_facts(difference.facts),
        "facts": describe_facts(difference.facts),
        "cells": difference.cells,
    }


def _view_check(check: Check | None) -> Document | None:
    if check is None:
        return None
    paths = [pattern.text for pattern in check.paths.patterns]
    return {"run": list(check.run), "paths": paths, "timeout": check.timeout, "required": check.required}


def view_replay(result: Replay, most: int | None = None) -> Document:
    """Return what came of taking recorded decisions again; the first `most` examples."""
    return {
        "ok": result.contradicted == 0,
        "decisions": result.decisions,
        "confirmed": result.confirmed,
        "incomplete": result.incomplete,
        "contradicted": result.contradicted,
        "unknown_policy": result.unknown_policy,
        "moved": [{"from": one, "to": other, "count": count} for (one, other), count in sorted(result.moved.items())],
        "examples": [
            {
                "sequence": each.sequence,
                "kind": each.kind,
                "from": each.before.effect.value,
                "to": each.after.effect.value,
                "was": _source(each.before),
                "by": _source(each.after),
                "reason": each.after.reason,
                "example": tell_facts(each.facts),
            }
            for each in result.examples[:most]
        ],
        "troubles": [{"sequence": each.sequence, "kind": each.kind, "why": each.why} for each in result.troubles[:most]],
    }


def view_answers(answers: Sequence[Answer]) -> list[Document]:
    """Return who may do something, and who could by starting a run."""
    return [
        {
            "who": each.subject.principal,
            "kind": each.subject.kind.value,
            "roles": sorted(each.subject.roles),
            "on_behalf_of": each.subject.on_behalf_of,
            "lease": each.subject.lease_id,
            **view_decision(each.decision),
            "obtainable": [
                {"role": run.role, "effect": run.decision.effect.value, "reason": run.decision.reason, "policy": _source(run.decision)}
                for run in each.obtainable
            ],
        }
        for each in answers
    ]


def _source(decision: Decision) -> str:
    return f"{decision.rule} ({decision.position})"


# -- sentences --------------------------------------------------------------------------------------------------------


def tell_facts(facts: Facts) -> str:
    """Return who does what under which circumstances, leaving out what is usual."""
    who = f"{facts.kind.value} {facts.principal}"
    who += f" with the role {', '.join(sorted(facts.roles))}" if facts.roles else ""
    who += f" for {facts.on_behalf_of}" if facts.on_behalf_of else ""
    circumstances = [
        f"having read {facts.taint}" if facts.taint != DEFAULT else "",
        f"labelled {facts.label}" if facts.label != DEFAULT else "",
        "able to act outside" if facts.outward and facts.action is not Action.EGRESS else "",
        f"approved by {facts.gate}" if facts.gate else "",
        *(_tell_change(facts.change) if facts.change is not None else ()),
    ]
    told = [each for each in circumstances if each]
    return f"{who}: {_tell_act(facts)}" + (f"; {', '.join(told)}" if told else "")


def _tell_act(facts: Facts) -> str:
    if facts.action is Action.START and facts.request is not None:
        return f"start with {_tell_request(facts.request, facts.now)}"
    if facts.action is Action.MERGE and facts.change is not None:
        paths = [render_path(path) for path in facts.change.paths]
        beyond = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
        return f"merge {', '.join(paths[:_NAMED]) or 'no path'}{beyond}"
    where = "" if facts.path is None else f" {render_path(facts.path)}"
    return f"{facts.action.value}{where}" + (f" to {facts.destination}" if facts.destination else "")


def _tell_request(request: Scope, now: int) -> str:
    actions = ", ".join(sorted(action.value for action in request.actions))
    budgets = "".join(f", {kind.value}={amount}" for kind, amount in sorted(request.budgets.items(), key=lambda each: each[0].value))
    accounts = f", to {', '.join(request.destinations)}" if request.destinations else ""
    return f"{actions} on {', '.join(request.paths)} for {render_duration(request.expires - now)}{budgets}{accounts}"


def _tell_change(change: ChangeFacts) -> Iterable[str]:
    counts = {
        "files": change.files,
        "bytes": change.bytes,
        "deletions": change.deletes,
        "twins": change.twins,
        "stale reads": change.stale_reads,
    }
    yield from (f"{count} {name}" for name, count in counts.items() if count)
    if change.checks != "none":
        yield f"checks {change.checks}"
