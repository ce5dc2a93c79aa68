"""What a lease is asked to be limited to, as arguments of an operation: read once, for starting a run and for narrowing a lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from interfaces.faults import Fault, Kind
from nasd.operations.operation import BUDGETS, DURATION, TEXT, TEXTS, Arguments, Schema
from trust.caveats import DOORS, MAX_DEPTH
from trust.labels import WORST, Label, parse_label
from trust.model import BudgetKind

SCOPE: Mapping[str, Schema] = {
    "paths": TEXTS,
    "actions": TEXTS,
    "ttl": DURATION,
    "purpose": TEXT,
    "budgets": BUDGETS,
    "destinations": {**TEXTS, "description": "accounts that an outward act may go to without a question; patterns"},
    "doors": {"type": "array", "items": {"enum": sorted(DOORS)}, "minItems": 1, "uniqueItems": True, "description": "where it counts"},
    "ceiling": {**TEXT, "description": "the highest label that may be read, such as internal/public or /public"},
    "actors": {**TEXTS, "description": "whom it is handed on to; a chain that only grows"},
    "holder": {**TEXT, "description": "the thumbprint of the key it is bound to: ssh:SHA256:... or x5t:..."},
    "depth": {"type": "integer", "minimum": 0, "maximum": MAX_DEPTH, "description": "how many generations may hang below it"},
}
"""The schema of each argument."""


class Limits(TypedDict, total=False):
    """What was asked for of the limits of a delegation, by the names that `trust.model.Scope` has for them."""

    destinations: tuple[str, ...]
    doors: frozenset[str]
    ceiling: Label
    actors: tuple[str, ...]
    holder: str
    depth: int


def read_limits(arguments: Arguments) -> Limits:
    """Return the limits among the arguments. Raises `Kind.INVALID` for a ceiling that is no label."""
    limits = Limits()
    if "destinations" in arguments:
        limits["destinations"] = tuple(arguments["destinations"])
    if "doors" in arguments:
        limits["doors"] = frozenset(arguments["doors"])
    if "ceiling" in arguments:
        limits["ceiling"] = _read_ceiling(arguments["ceiling"])
    if "actors" in arguments:
        limits["actors"] = tuple(arguments["actors"])
    if "holder" in arguments:
        limits["holder"] = arguments["holder"]
    if "depth" in arguments:
        limits["depth"] = arguments["depth"]
    return limits


def read_budgets(arguments: Arguments) -> dict[BudgetKind, int]:
    """Return the budgets among the arguments."""
    amounts: Mapping[str, Any] = arguments.get("budgets", {})
    return {BudgetKind(name): amount for name, amount in amounts.items()}


def _read_ceiling(text: str) -> Label:
    origin, slash, sensitivity = text.partition("/")
    hint = "write ORIGIN/SENSITIVITY, such as internal/public; leave a word out where it is not limited: /public"
    if not slash or not (origin or sensitivity):
        raise Fault(Kind.INVALID, f"ceiling: {text[:80]!r} is no label", hint=hint)
    try:
        return parse_label(origin or None, sensitivity or None, WORST)
    except ValueError as error:
        raise Fault(Kind.INVALID, f"ceiling: {error}", hint=hint) from error
