"""How much one request may take. Pure.

1. Every limit is checked before the memory or the time is spent; what passes is bounded by construction.
2. JSON is bounded by size and depth before it is parsed, and a name may appear once per object: two readers of one document never differ.
3. Text is text: half of a surrogate pair, which JSON can spell and UTF-8 cannot, is refused before anything has to store it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from interfaces.faults import Fault, Kind

_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds, rates in bytes a second.

    `threads` bounds the calls of the port that run at once, `uploads` the bodies that are read while they arrive, each with
    `upload_buffer` in memory, and `streams` the open event streams.
    """

    header_bytes: int = 32 << 10
    header_seconds: float = 15.0
    document_bytes: int = 4 << 20
    document_depth: int = 32
    file_bytes: int = 1 << 40
    idle_seconds: float = 60.0
    linger_seconds: float = 5.0
    body_rate: float = 1024.0
    upload_buffer: int = 1 << 20
    uploads: int = 64
    connections: int = 512
    threads: int = 40
    streams: int = 64
    heartbeat_seconds: float = 15.0


def parse_document(text: bytes, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in `text` (empty text: the empty object). Raises `Kind.INVALID`, `Kind.TOO_LARGE`."""
    if not text.strip():
        return {}
    if len(text) > limits.document_bytes:
        raise Fault(Kind.TOO_LARGE, f"a document has at most {limits.document_bytes} bytes")
    if depth_of(text) > limits.document_depth:
        raise Fault(Kind.INVALID, f"the document nests deeper than {limits.document_depth}", hint="send a flatter document")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
        if b"\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, UnicodeDecodeError) as error:
        raise Fault(Kind.INVALID, f"the body is not JSON: {error}", hint="send one JSON object in UTF-8") from error
    if not isinstance(value, dict):
        raise Fault(Kind.INVALID, "the body is JSON but not an object", hint='send {"name": value, ...}')
    return value


def depth_of(text: bytes) -> int:
    """Return how deep arrays and objects nest in JSON text, in one linear pass; brackets inside strings do not count."""
    depth = deepest = 0
    for match in _STRUCTURE.finditer(text):
        token = match[0]
        if token in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token in b"]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} appears twice")
    return found


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON value")
