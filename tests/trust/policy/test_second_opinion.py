"""Another policy engine (Cedar) decides generated policies as ours does.

Each rule is written in Cedar's language, and Cedar is asked three things about each path: is it refused, is it asked about, is it granted.
How the three combine is the rule of our reference page. Starts are left out: Cedar has no leases to weigh.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import cedarpy
from hypothesis import assume, given, settings

from tests.trust.policy.generated import compiled, documents, judged_facts
from trust.labels import Origin, Sensitivity
from trust.model import Action, Effect, Facts
from trust.policy import decide
from trust.policy.decide import OWNER_ACTIONS

NUMBERS = ("files", "bytes", "deletes", "twins", "stale_reads")
COMPARED = {"at_most": "<=", "at_least": ">=", "equals": "=="}
LEASED = {Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.PROPOSE, Action.EGRESS}
FILE_ACTIONS = {Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.MERGE}


def spell(pattern: str, what: str) -> str:
    """Write a pattern in Cedar, whose ``*`` crosses slashes."""
    if pattern in {"**", "*"}:
        return "true"
    if pattern.endswith("/**"):
        return f'({what} == "{pattern[:-3]}" || {what} like "{pattern[:-2]}*")'
    if pattern.startswith("**/"):
        return f'{what} like "{pattern[3:]}"'
    if "?" in pattern:
        return "(" + " || ".join(f'{what} == "{pattern.replace("?", letter)}"' for letter in "abcdefghijklmnopqrstuvwxyz") + ")"
    deeper = f'{what} like "{pattern.rpartition("/")[0]}/*/*"' if "/" in pattern else f'{what} like "*/*"'
    return f'({what} like "{pattern}" && !({deeper}))'


def any_of(parts: list[str]) -> str:
    return "(" + " || ".join(parts) + ")"


def conditions(rule: dict[str, Any]) -> Iterator[str]:
    who = rule.get("who", {})
    for key, fact in (("kinds", "kind"),):
        if key in who:
            yield f"{json.dumps(who[key])}.contains(context.{fact})"
    if "roles" in who:
        yield f"context.roles.containsAny({json.dumps(who['roles'])})"
    for key, fact in (("principals", "name"), ("on_behalf_of", "behalf")):
        if key in who:
            yield any_of([spell(each, f"context.{fact}") for each in who[key]])
    yield f"{json.dumps(rule['actions'])}.contains(context.act)"
    yield any_of([spell(each, "context.path") for each in rule.get("paths", ["**"])]) + " || !context.has_path"
    for subject, wanted in rule.get("when", {}).items():
        if isinstance(wanted, list):
            yield f"{json.dumps(wanted)}.contains(context.{subject})"
        else:
            yield from (f"context.{subject} {COMPARED[operator]} {number}" for operator, number in wanted.items())


def permit(rule: dict[str, Any]) -> str:
    return "permit(principal, action, resource) when { " + " && ".join(f"({each})" for each in conditions(rule)) + " };"


def context(asked: Facts, path: bytes | None) -> dict[str, Any]:
    origin, sensitivity = max(asked.taint.origin, asked.label.origin), max(asked.taint.sensitivity, asked.label.sensitivity)
    adds = asked.action is not Action.READ or asked.label.origin > asked.taint.origin or asked.label.sensitivity > asked.taint.sensitivity
    outward = asked.outward or asked.action in {Action.MERGE, Action.EGRESS}
    looked_at = asked.action in {Action.READ, Action.MERGE, Action.EGRESS}
    broken = looked_at and adds and outward and origin is Origin.EXTERNAL and sensitivity is Sensitivity.SENSITIVE
    change = asked.change
    return {
        "kind": asked.kind.value,
        "roles": sorted(asked.roles),
        "name": asked.principal,
        "behalf": asked.on_behalf_of,
        "act": asked.action.value,
        "path": "" if path is None else path.decode("latin-1"),
        "has_path": path is not None,
        "origin": Origin(origin).name.lower(),
        "sensitivity": Sensitivity(sensitivity).name.lower(),
        "rule_of_two": "broken" if broken else "kept",
        "destination": "declared" if asked.destination == "declared" else "undeclared",
        "checks": change.checks if change else "none",
        **{name: getattr(change, name) if change else 0 for name in NUMBERS},
    }


def holds(policies: list[str], facts: dict[str, Any]) -> bool:
    """Ask Cedar whether one of the rules permits."""
    request = {"principal": 'P::"p"', "action": 'A::"a"', "resource": 'R::"r"', "context": facts}
    answer = cedarpy.is_authorized(request, "\n".join(policies), [])
    assert not answer.diagnostics.errors, answer.diagnostics.errors
    return bool(answer.allowed)


def second_opinion(document: dict[str, Any], asked: Facts) -> Effect:
    refusing = [permit(rule) for rule in document["guards"] if rule["effect"] == "refuse"]
    asking = [permit(rule) for rule in document["guards"] if rule["effect"] == "gate"]
    granting = [permit(rule) for rule in document["grants"]]
    paths: list[bytes | None] = list(asked.change.paths) if asked.change is not None else [asked.path]
    known = [context(asked, path) for path in paths]
    broken = known[0]["rule_of_two"] == "broken"
    steering = asked.change is not None and b".nas/policy.yaml" in asked.change.paths
    if any(holds(refusing, each) for each in known) or (broken and document["rule_of_two"]["effect"] == "refuse"):
        return Effect.DENY
    granted = all(holds(granting, each) for each in known)
    asks = any(holds(asking, each) for each in known) or (broken and document["rule_of_two"]["effect"] == "gate") or steering
    if asks and (granted or asked.action not in LEASED):
        return Effect.GATE
    return Effect.ALLOW if granted else Effect.DENY


@settings(max_examples=100)
@given(documents, judged_facts())
def test_another_engine_decides_alike(document: dict[str, Any], asked: Facts) -> None:
    assume(asked.action is not Action.START and (asked.change is None or asked.change.paths))
    decision = decide(compiled(document), asked)
    if "owner" in asked.roles and asked.lease is None and asked.action in OWNER_ACTIONS:
        assert decision.effect is Effect.ALLOW  # built in, which no document says
        return
    assert decision.effect is second_opinion(document, asked)
