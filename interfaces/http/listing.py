"""How nodes and directories read as documents. Pure.

1. ``name`` is for people; ``segment`` is exact: put between slashes of a URL it names the same node, whatever its bytes.
2. A page continues after a name, not after a number: what is added or removed meanwhile moves nothing else.
"""

from __future__ import annotations

import stat
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes, Document
from interfaces.web.conditions import tag_of
from interfaces.web.names import decode_segment, display_name, encode_segment

PAGE = 1000
MAX_PAGE = 10_000

_FIRST = -62_135_596_800_000_000_000
_LAST = 253_402_300_799_999_999_999

_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}


def describe_node(name: bytes, attributes: Attributes) -> Document:
    """Return what a listing says of one name."""
    return {
        "name": display_name(name),
        "segment": encode_segment(name),
        "type": _TYPES.get(stat.S_IFMT(attributes.st_mode), "other"),
        "size": attributes.size,
        "mode": f"{stat.S_IMODE(attributes.st_mode):04o}",
        "links": attributes.links,
        "modified": render_nanoseconds(attributes.mtime_ns),
        "node": attributes.node,
        "etag": tag_of(attributes),
    }


def describe_directory(entries: Sequence[tuple[bytes, Attributes]], cursor: str, limit: int) -> Document:
    """Return the page of `entries` (ordered by name) that follows `cursor` (empty: the first). Raises `Kind.INVALID`."""
    if not 1 <= limit <= MAX_PAGE:
        raise Fault(Kind.INVALID, f"a page has 1 to {MAX_PAGE} names, not {limit}")
    start = bisect_right(entries, decode_segment(cursor.encode()), key=lambda entry: entry[0]) if cursor else 0
    page = entries[start : start + limit]
    truncated = start + limit < len(entries)
    return {
        "items": [describe_node(name, attributes) for name, attributes in page],
        "next": encode_segment(page[-1][0]) if truncated else None,
        "truncated": truncated,
    }


def render_nanoseconds(value: int) -> str:
    """Return an RFC 3339 UTC time with all nine digits; a time no calendar has reads as the nearest one it has."""
    seconds, nanoseconds = divmod(min(max(value, _FIRST), _LAST), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()}.{nanoseconds:09d}Z"


NODE_SCHEMA: Document = {
    "type": "object",
    "required": ["name", "segment", "type", "size", "mode", "links", "modified", "node", "etag"],
    "properties": {
        "name": {"type": "string", "description": "For people; bytes that are not UTF-8 read \\xNN."},
        "segment": {"type": "string", "description": "The exact name, percent-encoded, as it goes into a URL."},
        "type": {"type": "string", "enum": [*_TYPES.values(), "other"]},
        "size": {"type": "integer", "description": "Bytes."},
        "mode": {"type": "string", "description": "Permission bits, octal."},
        "links": {"type": "integer"},
        "modified": {"type": "string", "description": "RFC 3339, UTC, nanoseconds."},
        "node": {"type": "integer", "description": "Stays the same through renames."},
        "etag": {"type": "string"},
        "target": {"type": "string", "description": "Where a symlink points, percent-encoded; only with ?stat."},
    },
}

DIRECTORY_SCHEMA: Document = {
    "type": "object",
    "required": ["items", "next", "truncated"],
    "properties": {
        "items": {"type": "array", "items": NODE_SCHEMA},
        "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        "truncated": {"type": "boolean"},
    },
}
