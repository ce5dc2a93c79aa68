r"""Pages of a file for a reader with a token budget.

1. A page never has more than its budget of bytes. A token is counted as `TOKEN_BYTES` bytes of UTF-8, less than most encoders need, so
   a budget in tokens holds for ordinary text.
2. A page ends with a line where it can, else between two characters; the next one continues exactly there.
3. A position belongs to one content: when the file has changed, continuing it fails instead of mixing two states.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from interfaces.port import Handle

TOKEN_BYTES = 3
_WINDOW = 256 << 10
_SCAN = 64 << 20


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file: a byte, the line (from 1) it is in, and the tag of the content."""

    offset: int
    line: int
    tag: str


@dataclass(frozen=True, slots=True)
class Page:
    """What was read: text, its first and last line, and where it goes on (None: it does not)."""

    text: str
    first_line: int
    last_line: int
    following: Position | None


def render_position(position: Position) -> str:
    """Return a position as a cursor."""
    return f"{position.offset}.{position.line}.{position.tag}"


def parse_position(cursor: str, tag: str) -> Position:
    """Return the position a cursor stands for, in the content of `tag`. Raises `Kind.INVALID`, `Kind.CONFLICT`."""
    offset, _, rest = cursor.partition(".")
    line, _, seen = rest.partition(".")
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in (offset, line)):
        raise Fault(Kind.INVALID, "the cursor is not one of read", hint="repeat exactly what the page before gave, or leave it out")
    if seen != tag:
        raise Fault(Kind.CONFLICT, "the file has changed since the page before", hint="read it again from its first line, without a cursor")
    return Position(int(offset), int(line), tag)


def find_line(handle: Handle, line: int, tag: str) -> Position:
    """Return where a line begins; past the end: the end. Raises `Kind.TOO_LARGE` when it is too far to look for it."""
    offset, reached = 0, 1
    while reached < line:
        window = handle.read(offset, _WINDOW)
        if not window:
            break
        ends = window.count(b"\n")
        if reached + ends >= line:
            at = _end_of_line(window, line - reached)
            return Position(offset + at, line, tag)
        offset, reached = offset + len(window), reached + ends
        if offset >= _SCAN:
            raise Fault(Kind.TOO_LARGE, f"line {line} begins beyond {_SCAN >> 20} MiB", hint="use search to find what you look for")
    return Position(offset, reached, tag)


def read_text(handle: Handle, start: Position, lines: int, budget: int) -> Page:
    """Return a page of at most `lines` lines and `budget` bytes from `start`. Raises `Kind.UNSUPPORTED` for what is not text."""
    content = handle.read(start.offset, budget + 1)
    more = len(content) > budget
    if more:
        content = _whole_characters(content[:budget])
        content = content[: content.rfind(b"\n") + 1] or content
    if content.count(b"\n") >= lines:
        content = content[: _end_of_line(content, lines)]
        more = bool(handle.read(start.offset + len(content), 1))
    ends = content.count(b"\n")
    last = start.line + ends - (1 if content.endswith(b"\n") else 0)
    following = Position(start.offset + len(content), start.line + ends, start.tag) if more and content else None
    return Page(_decode(content), start.line, last if content else start.line - 1, following)


def read_base64(handle: Handle, start: Position, budget: int) -> Page:
    """Return a page of raw bytes as base64 text of at most `budget` bytes, from `start`."""
    room = max(budget // 4 * 3, 3)
    content = handle.read(start.offset, room + 1)
    taken = content[:room]
    following = Position(start.offset + room, 0, start.tag) if len(content) > room else None
    return Page(base64.b64encode(taken).decode(), 0, 0, following)


def _end_of_line(content: bytes, number: int) -> int:
    """Return where the line after `number` ends of lines begins."""
    at = 0
    for _ in range(number):
        at = content.index(b"\n", at) + 1
    return at


def _whole_characters(content: bytes) -> bytes:
    """Return content without a character at its end that was cut."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return content[:-back] if length > back else content
    return content


def _decode(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Fault(Kind.UNSUPPORTED, "the file is not UTF-8 text", hint='read it with "encoding": "base64"')
    return text
