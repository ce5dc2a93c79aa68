"""Facts as a record keeps them: canonical JSON there and back, so that any decision can be taken again years later.

1. `describe_facts` and `read_facts` are inverse to one another, for every `Facts`. Equal facts have one text and one hash.
2. A change of more paths than `MOST_PATHS` is cut: the description tells how many there were and their digest, and `read_facts` refuses it
   with `FactsIncomplete`. A decision is never taken again from half of its facts.
3. What the reader does not know, it refuses; members that a later release added have their defaults.
4. Pure.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from trust.canonical import canonical
from trust.errors import FactsIncomplete
from trust.labels import Label, parse_label
from trust.model import (
    Action,
    BudgetKind,
    ChangeFacts,
    Decision,
    Facts,
    LeaseState,
    PrincipalKind,
    Scope,
)

MOST_PATHS = 200
"""How many paths of a change a record lists."""
_CUT = "paths_of"

Description = dict[str, Any]


def describe_facts(facts: Facts) -> Description:
    """Return the facts as plain values: sets sorted, labels as words, bytes as text with surrogates for what is no UTF-8."""
    description: Description = _encode(facts)
    if facts.change is not None and len(facts.change.paths) > MOST_PATHS:
        change = description["change"]
        change[_CUT] = {"count": len(facts.change.paths), "digest": _digest(change["paths"])}
        change["paths"], change["deleted"] = change["paths"][:MOST_PATHS], change["deleted"][:MOST_PATHS]
    return description


def hash_facts(facts: Facts) -> str:
    """Return the SHA-256 of the whole facts, whatever of them a record lists."""
    return _digest(_encode(facts))


def judged(policy: str, facts: Facts, decision: Decision) -> Description:
    """Return what a record keeps of a decision: the hash of the policy, the facts and their hash, and what was said."""
    return {
        "policy": policy,
        "facts": describe_facts(facts),
        "hash": hash_facts(facts),
        "decision": describe_decision(decision),
    }


def describe_decision(decision: Decision) -> Description:
    """Return the part of a decision that must come out again from the same policy and facts, wherever the policy is read from."""
    return {
        "effect": decision.effect.value,
        "denial": decision.denial.value,
        "rule": decision.rule,
        "asking": list(decision.asking),
        "position": f"{decision.position.line}:{decision.position.column}",
    }


def read_facts(description: Mapping[str, Any]) -> Facts:
    """Return the facts of a description. Raises `FactsIncomplete` when some of them are missing or cannot be understood."""
    change = description.get("change")
    if isinstance(change, dict) and _CUT in change:
        raise FactsIncomplete("change", f"the record lists {MOST_PATHS} of {change[_CUT]['count']} changed paths")
    try:
        return Facts(**_decode(description, _FACTS))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FactsIncomplete("facts", f"the record cannot be understood: {error}") from error


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def _encode(value: Any) -> Any:
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Label):
        return str(value)
    if is_dataclass(value):
        return {each.name: _encode(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {_encode(key): _encode(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(_encode(each) for each in value)
    return [_encode(each) for each in value]


Reader = Callable[[Any], Any]


def _decode(description: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
    unknown = description.keys() - readers.keys()
    if unknown:
        raise ValueError(f"unknown members {', '.join(sorted(unknown))}")
    return {name: readers[name](value) for name, value in description.items()}


def _exactly(*kinds: type) -> Reader:
    """Return a reader that takes values of these types and no others; a truth value is no number."""

    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"{value!r} is not of the right type")
        return value

    return read


_text, _number, _truth = _exactly(str), _exactly(int), _exactly(bool)


def _optional(reader: Reader) -> Reader:
    return lambda value: None if value is None else reader(value)


def _bytes(value: Any) -> bytes:
    return str(_text(value)).encode("utf-8", "surrogateescape")


def _several(reader: Reader) -> Reader:
    return lambda value: tuple(reader(each) for each in _exactly(list)(value))


def _set(reader: Reader) -> Reader:
    return lambda value: frozenset(reader(each) for each in _exactly(list)(value))


def _amounts(value: Any) -> dict[BudgetKind, int]:
    return {BudgetKind(kind): _number(amount) for kind, amount in _exactly(dict)(value).items()}


def _label(value: Any) -> Label:
    origin, sensitivity = _text(value).split("/")
    return parse_label(origin, sensitivity)


_SCOPE: Mapping[str, Reader] = {
    "paths": _several(_text),
    "actions": _set(Action),
    "not_before": _number,
    "expires": _number,
    "purpose": _text,
    "budgets": _amounts,
    "destinations": _several(_text),
    "doors": _optional(_set(_text)),
    "ceiling": _optional(_label),
    "actors": _several(_text),
    "holder": _text,
    "depth": _optional(_number),
}
_CHANGE: Mapping[str, Reader] = {
    "paths": _several(_bytes),
    "deleted": _several(_bytes),
    "files": _number,
    "deletes": _number,
    "bytes": _number,
    "twins": _number,
    "checks": _text,
    "stale_reads": _number,
}


def _scope(value: Any) -> Scope:
    return Scope(**_decode(value, _SCOPE))


_FACTS: Mapping[str, Reader] = {
    "now": _number,
    "principal": _text,
    "kind": PrincipalKind,
    "roles": _set(_text),
    "on_behalf_of": _text,
    "action": Action,
    "path": _optional(_bytes),
    "lease": _optional(_scope),
    "lease_state": _optional(LeaseState),
    "left": _amounts,
    "needs": _amounts,
    "protected": _truth,
    "change": _optional(lambda value: ChangeFacts(**_decode(value, _CHANGE))),
    "request": _optional(_scope),
    "gate": _optional(_text),
    "disabled": _truth,
    "taint": _label,
    "label": _label,
    "outward": _truth,
    "destination": _text,
}
