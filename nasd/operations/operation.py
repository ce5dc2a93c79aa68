"""What an operation of the API is, and the small words its schemas are written in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.durations import parse_duration
from nasd.paths import parse_path
from trust.model import LEASABLE, USUAL, Action

if TYPE_CHECKING:
    from nasd.desk import Desk
    from trust.model import Identity

Schema = dict[str, Any]
Arguments = Mapping[str, Any]

TEXT: Schema = {"type": "string", "maxLength": 65536}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": 10000}
DURATION: Schema = {"type": ["string", "integer", "number"], "description": "seconds, or text such as 90s, 24h, 7d"}
TEXTS: Schema = {"type": "array", "items": TEXT, "maxItems": 10000}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
TIME: Schema = {"type": ["string", "null"], "description": "RFC 3339, UTC"}
BUDGETS: Schema = {
    "type": "object",
    "properties": {name: COUNT for name in ("reads", "bytes_read", "bytes_written", "commits")},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: its id (``noun.verb``), how HTTP reaches it, what it takes and gives, and the function that does it.

    `effect` tells whether it changes anything (then an ``Idempotency-Key`` makes a repeat safe).
    """

    id: str
    method: str
    path: str
    summary: str
    handle: Callable[[Desk, Identity, Arguments], Document]
    parameters: Schema
    response: Schema
    effect: bool = False
    status: int = 200

    def document(self) -> Document:
        """Return the description a door builds its route and its OpenAPI from."""
        return {
            "method": self.method,
            "path": self.path,
            "summary": self.summary,
            "parameters": self.parameters,
            "response": self.response,
            "status": self.status,
            "effect": self.effect,
            "tags": [self.id.partition(".")[0]],
        }


def takes(required: Mapping[str, Schema] | None = None, **optional: Schema) -> Schema:
    """Return the schema of an object with `required` and `optional` properties and no others."""
    needed = dict(required or {})
    return {"type": "object", "properties": needed | optional, "required": list(needed), "additionalProperties": False}


def gives(**properties: Schema) -> Schema:
    """Return the schema of an answer with at least these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def gives_list(**properties: Schema) -> Schema:
    """Return the schema of a page of items with at least these properties."""
    return gives(items={"type": "array", "items": gives(**properties)}, next=MAYBE_TEXT, truncated=FLAG)


def seconds(value: object, name: str) -> int:
    """Return a duration argument in whole seconds. Raises `Kind.INVALID`."""
    try:
        return int(parse_duration(value))
    except ValueError as error:
        raise Fault(Kind.INVALID, f"{name}: {error}", hint="write a duration such as 90s, 15m, 24h or 7d") from error


def require_head(arguments: Arguments, head: str) -> None:
    """Return when ``If-Match`` (RFC 9110, 13.1.1) is absent or names the branch's head as an entity tag. Raises `Kind.PRECONDITION`."""
    wanted = arguments.get("if_match")
    if wanted is None or wanted.strip() == "*":
        return
    if head not in [tag.strip().strip('"') for tag in wanted.split(",")]:
        raise Fault(Kind.PRECONDITION, f"the branch is at {head}, not at {wanted}", hint="look at what changed, then repeat with its head")


def path_argument(text: str) -> bytes:
    """Return a path argument. Raises `Kind.INVALID`."""
    try:
        return parse_path(text)
    except ValueError as error:
        raise Fault(Kind.INVALID, str(error), hint="write names joined by '/'") from error


def actions_argument(names: Sequence[str] | None) -> frozenset[Action]:
    """Return the actions a lease should carry; none named means the usual ones. Raises `Kind.INVALID`."""
    if not names:
        return USUAL
    known = {action.value: action for action in LEASABLE}
    for name in names:
        if name not in known:
            raise Fault(Kind.INVALID, f"{name}: no action a lease can carry", hint=f"known: {', '.join(sorted(known))}")
    return frozenset(known[name] for name in names)
