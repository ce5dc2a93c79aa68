"""What is wrong with the shape of a policy document, each finding at its place and with a suggestion.

1. The published schema is the authority; this module only words what it finds.
2. Findings come ordered by position.
3. Pure.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from trust.model import Position
from trust.policy.reading import Diagnostic, Located
from trust.policy.resources import policy_schema

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

_CODES = {
    "type": "wrong-type",
    "enum": "unknown-word",
    "const": "unknown-version",
    "minItems": "empty",
    "minProperties": "empty",
    "minLength": "empty",
    "pattern": "bad-id",
}
_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
}


@functools.cache
def _validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # an eighth of a second that only reading a policy should cost

    return Draft202012Validator(policy_schema())


def check_shape(located: Located) -> list[Diagnostic]:
    """Return where the document departs from the schema."""
    found = [diagnostic for error in _validator().iter_errors(located.value) for diagnostic in _describe(error, located)]
    return sorted(dict.fromkeys(found), key=lambda each: (each.position.line, each.position.column, each.message))


def _describe(error: ValidationError, located: Located) -> Iterable[Diagnostic]:
    place = tuple(error.absolute_path)
    position = located.position(place)
    found: Any = error.instance
    rule: Any = error.validator
    wanted: Any = error.validator_value
    if rule == "additionalProperties":
        return _unknown_keys(error.schema, [(key, located.position((*place, key))) for key in found])
    if rule == "required":
        hint = f"needed here: {', '.join(wanted)}"
        return [Diagnostic(position, f"'{key}' is missing", hint, "missing-key") for key in wanted if key not in found]
    return [Diagnostic(position, *_word(str(rule), wanted, found), _CODES.get(str(rule), "out-of-bounds"))]


def _unknown_keys(schema: Any, keys: list[tuple[str, Position]]) -> list[Diagnostic]:
    known = list(schema.get("properties", {}))
    return [Diagnostic(position, f"unknown key '{key}'", suggest(key, known), "unknown-key") for key, position in keys if key not in known]


def _word(rule: str, wanted: Any, found: Any) -> tuple[str, str]:
    if rule == "type":
        types: list[str] = wanted if isinstance(wanted, list) else [wanted]
        return f"expected {' or '.join(_TYPES.get(each, each) for each in types)}, found {_show(found)}", ""
    if rule == "enum":
        return f"{_show(found)} is not known here", suggest(str(found), [str(each) for each in wanted])
    if rule == "const":
        return f"expected {wanted}, found {_show(found)}", ""
    if rule in {"minItems", "minProperties", "minLength"}:
        return "this must not be empty", ""
    if rule == "pattern":
        return f"{_show(found)} is no id: lower-case letters, digits, '-' and '_', a letter first", ""
    return f"{_show(found)} is out of bounds ({rule} {wanted})", ""


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the nearest known word, else what is known."""
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(choices)}" if choices else ""
