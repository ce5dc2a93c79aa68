"""What a tool is: its words for the model, its schemas, what it may change, and the function that does it. Pure.

1. Arguments are checked against the schema before the function sees them; what does not fit is told in a sentence with its place.
2. A tool gives a document, which its output schema describes, and the same as text for clients that show text.
3. Whether a tool is listed follows from what the lease carries. That is a courtesy: each call is decided by the port, listed or not.
4. A failure is a result the model can act on: what happened, why, what to do next, and the gate that waits when one does.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator

from interfaces.faults import Fault, Kind
from interfaces.matching import Pattern
from interfaces.mcp.room import Arguments, Room
from interfaces.port import Caller, Document

Schema = dict[str, Any]
MAX_ANSWER = 1 << 20
"""Characters of the text of an answer."""

PATH: Schema = {"type": "string", "maxLength": 16384, "description": "Names joined by '/', from the root of the branch: src/a.py"}
BRANCH: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "description": "A branch or run; default: your own run's branch."}
COMMIT: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "description": "As it was at this commit; default: as it is now."}
CURSOR: Schema = {"type": "string", "maxLength": 32768, "description": "What the page before gave as cursor; leave out for the first page."}
TEXT: Schema = {"type": "string", "maxLength": 4 << 20}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}


class Effect(enum.Enum):
    """What a tool does to the world: nothing, adding to it, or also replacing what was there."""

    READS = "reads"
    ADDS = "adds"
    REPLACES = "replaces"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool gives: a document, and how it reads as text (empty: the document as JSON).

    `caution` stands before the text and `note` after it, apart from it.
    """

    document: Document
    text: str = ""
    note: str = ""
    caution: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool. `needs` are the actions a lease must carry for it to be listed, `within` is a directory it must reach.

    `outside` tells that it reaches beyond the appliance.
    """

    name: str
    title: str
    description: str
    effect: Effect
    takes: Schema
    gives: Schema
    run: Callable[[Room, Arguments], Answer]
    needs: frozenset[str] = field(default_factory=frozenset)
    within: bytes = b""
    idempotent: bool = False
    outside: bool = False

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return Draft202012Validator(self.takes)

    def describe(self) -> types.Tool:
        """Return the definition clients list."""
        annotations = types.ToolAnnotations(
            read_only_hint=self.effect is Effect.READS,
            destructive_hint=self.effect is Effect.REPLACES,
            idempotent_hint=self.idempotent or self.effect is Effect.READS,
            open_world_hint=self.outside,
        )
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.takes,
            output_schema=self.gives,
            annotations=annotations,
        )

    def is_for(self, caller: Caller) -> bool:
        """Tell whether a caller's lease lets this tool do anything at all."""
        if caller.actions is not None and not self.needs <= caller.actions:
            return False
        return not self.within or any(_leads_to(pattern, self.within) for pattern in caller.paths)

    def answer(self, room: Room, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Return the result of a call; faults are results too. Blocks."""
        try:
            self._check(arguments)
            return render_answer(self.run(room, arguments))
        except Fault as fault:
            return render_fault(fault)

    def _check(self, arguments: Mapping[str, Any]) -> None:
        error = next(self._validator.iter_errors(arguments), None)
        if error is None:
            return
        place = ".".join(map(str, error.absolute_path))
        raise Fault(
            Kind.INVALID,
            f"{place + ': ' if place else ''}{error.message[:500]}",
            hint=f"{self.name} takes {', '.join(self.takes['properties'])}",
        )


def takes(required: Mapping[str, Schema] | None = None, **optional: Schema) -> Schema:
    """Return the schema of an object with `required` and `optional` properties and no others."""
    needed = dict(required or {})
    return {"type": "object", "properties": needed | optional, "required": list(needed), "additionalProperties": False}


def gives(**properties: Schema) -> Schema:
    """Return the schema of an answer with at least these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def gives_page(**properties: Schema) -> Schema:
    """Return the schema of a page of items with at least these properties each."""
    return gives(items={"type": "array", "items": gives(**properties)}, cursor=MAYBE_TEXT, truncated=FLAG)


def described(schema: Schema, description: str) -> Schema:
    """Return a schema with another description."""
    return schema | {"description": description}


def limit(default: int, most: int) -> Schema:
    """Return the schema of how many items a page has."""
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


def page(items: list[Document], cursor: str | None) -> Document:
    """Return the document of a page; `cursor` continues it when there is more."""
    return {"items": items, "cursor": cursor or None, "truncated": bool(cursor)}


def render_answer(answer: Answer) -> types.CallToolResult:
    """Return an answer as the result of a call. Raises `Kind.TOO_LARGE`."""
    text = answer.text or json.dumps(answer.document, ensure_ascii=False)
    if len(text) > MAX_ANSWER:
        raise Fault(Kind.TOO_LARGE, f"the answer has {len(text)} characters", hint="ask for less: a smaller limit, or a narrower path")
    content: list[types.ContentBlock] = [types.TextContent(text=part) for part in (answer.caution, text, answer.note) if part]
    document = answer.document | {"caution": answer.caution} if answer.caution else answer.document
    return types.CallToolResult(content=content, structured_content=document)


def render_fault(fault: Fault) -> types.CallToolResult:
    """Return a fault as the result of a call, for the model to read; ``_meta`` has the same for programs."""
    lines = [f"{fault.message} ({fault.kind.value})"]
    if fault.policy:
        lines.append(f"Decided by: {fault.policy}")
    if fault.gate:
        lines.append(f"A person is asked: gate {fault.gate}. Call the tool gates with it to see the answer, then repeat.")
    if fault.hint:
        lines.append(f"Next: {fault.hint}")
    told = {"code": fault.kind.value, "message": fault.message, "hint": fault.hint, "policy": fault.policy, "gate": fault.gate}
    meta = {"agent-nas/fault": {name: value for name, value in told.items() if value}}
    return types.CallToolResult(content=[types.TextContent(text="\n".join(lines))], is_error=True, _meta=meta)


def _leads_to(pattern: str, directory: bytes) -> bool:
    """Tell whether a lease's pattern is about a directory at the root or something in it."""
    about = Pattern(pattern, anchored=True)
    return bool(about.step(about.start, directory))
