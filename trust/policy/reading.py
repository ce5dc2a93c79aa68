"""YAML text to plain values that remember where they stood.

1. The text is composed, never constructed: no tag makes an object. Scalars are strings, whole numbers, ``true``, ``false`` and null, as in
   YAML 1.2; ``yes``, ``on``, ``0777`` and ``12:30`` stay the strings they look like.
2. Anchors and aliases, tags, keys that are not text and repeated keys are findings: two readers must not see two documents.
3. Size and depth are bounded before anything is built.
4. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from trust.model import Position

MAX_LENGTH = 256 * 1024
"""The longest document, in characters."""
MAX_DEPTH = 16
"""The deepest nesting."""
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAGS = {
    yaml.ScalarNode: "tag:yaml.org,2002:str",
    yaml.SequenceNode: "tag:yaml.org,2002:seq",
    yaml.MappingNode: "tag:yaml.org,2002:map",
}

Place = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


class Severity(enum.Enum):
    """Whether a document with a finding may count: one with an error is not adopted."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a document. `code` names its kind and never changes."""

    position: Position
    message: str
    hint: str = ""
    code: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """Return ``file:line:column: message (hint)``."""
        return f"{self.position}: {self.message}" + (f" ({self.hint})" if self.hint else "")


@dataclass(slots=True)
class Located:
    """A document as plain values, with the position of every value and key, and what was wrong with its text."""

    source: str
    value: Any = None
    positions: dict[Place, Position] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def position(self, place: Place) -> Position:
        """Return where a value stands, or where the nearest thing around it does."""
        while place and place not in self.positions:
            place = place[:-1]
        return self.positions.get(place, Position(self.source, 1, 1))

    def note(self, code: str, position: Position, message: str, hint: str = "") -> None:
        """Add an error."""
        self.diagnostics.append(Diagnostic(position, message, hint, code))


def read_document(text: str, source: str) -> Located:
    """Return the document with every finding about its text; its value is None when nothing could be read."""
    located = Located(source)
    if len(text) > MAX_LENGTH:
        located.note("too-long", Position(source, 1, 1), f"the document is longer than {MAX_LENGTH} characters")
        return located
    if any("\ud800" <= character <= "\udfff" for character in text):
        located.note("not-text", Position(source, 1, 1), "the document is not UTF-8")
        return located
    try:
        if _scan(text, located):
            node = yaml.compose(text, Loader=_LOADER)
            located.value = _convert(node, (), located) if node is not None else None
    except yaml.YAMLError as error:
        located.note("not-yaml", *_syntax(error, source))
    return located


def _syntax(error: yaml.YAMLError, source: str) -> tuple[Position, str]:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    return (_at(mark, source) if mark is not None else Position(source, 1, 1)), f"not readable as YAML: {problem}"


def _at(mark: Any, source: str) -> Position:
    return Position(source, mark.line + 1, mark.column + 1)


def _scan(text: str, located: Located) -> bool:
    """Note anchors, aliases and depth before anything is built, and tell whether it is safe to build."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if getattr(event, "anchor", None) is not None:
            located.note("alias", _at(event.start_mark, located.source), "anchors and aliases are not allowed", "write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            located.note("too-deep", _at(event.start_mark, located.source), f"nested deeper than {MAX_DEPTH}")
            return False
    return not located.diagnostics


def _convert(node: yaml.Node, place: Place, located: Located) -> Any:
    located.positions.setdefault(place, _at(node.start_mark, located.source))
    if node.tag != _TAGS.get(type(node)):
        located.note("tag", _at(node.start_mark, located.source), f"tag {node.tag} is not allowed")
        return None
    if isinstance(node, yaml.SequenceNode):
        return [_convert(child, (*place, index), located) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return dict(_pairs(node, place, located))
    quoted = isinstance(node, yaml.ScalarNode) and bool(node.style)
    return node.value if quoted else _scalar(node.value)


def _pairs(node: yaml.MappingNode, place: Place, located: Located) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for key_node, value_node in node.value:
        at = _at(key_node.start_mark, located.source)
        if not isinstance(key_node, yaml.ScalarNode):
            located.note("bad-key", at, "a key must be text")
            continue
        key = key_node.value
        if key in seen:
            located.note("repeated-key", at, f"'{key}' is given twice", "keep one of the two")
            continue
        seen.add(key)
        located.positions[*place, key] = at
        yield key, _convert(value_node, (*place, key), located)


def _scalar(text: str) -> str | int | bool | None:
    if text in {"", "~", "null"}:
        return None
    if text in {"true", "false"}:
        return text == "true"
    digits = text.removeprefix("-")
    plain_number = digits.isascii() and digits.isdigit() and len(digits) <= 18 and (digits == "0" or digits[0] != "0")
    return int(text) if plain_number else text
