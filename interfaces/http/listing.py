"""How nodes and directories read as documents. Pure.

1. ``name`` is for people; ``segment`` is exact: put between slashes of a URL it names the same node, whatever its bytes.
2. A page continues after a name, not after a number: what is added or removed meanwhile moves nothing else.
"""

from __future__ import annotations

import stat
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from interfaces.faults import Fault, Kind
from interfaces.finding import Match, Outcome
from interfaces.port import Attributes, Document
from interfaces.web.conditions import tag_of
from interfaces.web.names import decode_segment, display_name, encode_path, encode_segment

Entries = Sequence[tuple[bytes, Attributes]]
Label = Mapping[str, str]
"""``origin`` and ``sensitivity`` in words; empty for what nobody labelled."""
UNLABELLED: Label = {}

PAGE = 1000
MAX_PAGE = 10_000

_FIRST = -62_135_596_800_000_000_000
_LAST = 253_402_300_799_999_999_999

_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}


def describe_node(name: bytes, attributes: Attributes, label: Label = UNLABELLED) -> Document:
    """Return what a listing says of one name; a label only where there is one."""
    node: Document = {
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
    return node | {"label": dict(label)} if label else node


def describe_directory(entries: Entries, cursor: str, limit: int, labels: Callable[[Entries], Mapping[bytes, Label]]) -> Document:
    """Return the page of `entries` (ordered by name) that follows `cursor` (empty: the first). Raises `Kind.INVALID`.

    `labels` gives the labels of what is on the page, by name.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise Fault(Kind.INVALID, f"a page has 1 to {MAX_PAGE} names, not {limit}")
    start = bisect_right(entries, decode_segment(cursor.encode()), key=lambda entry: entry[0]) if cursor else 0
    page = entries[start : start + limit]
    truncated, known = start + limit < len(entries), labels(page)
    return {
        "items": [describe_node(name, attributes, known.get(name, UNLABELLED)) for name, attributes in page],
        "next": encode_segment(page[-1][0]) if truncated else None,
        "truncated": truncated,
    }


def describe_outcome(outcome: Outcome, labels: Mapping[bytes, Label]) -> Document:
    """Return the page of matches that a search found, and what it could not look at; `labels` are those of matching paths."""
    return {
        "items": [describe_match(match, labels.get(match.path, UNLABELLED)) for match in outcome.matches],
        "next": outcome.cursor if outcome.truncated else None,
        "truncated": outcome.truncated,
        "stopped": outcome.stopped,
        "searched": {"files": outcome.files, "bytes": outcome.bytes, "binary": outcome.binary, "failed": outcome.failed},
        "failures": [
            {"path": display_name(failure.path), "code": failure.fault.kind.value, "message": failure.fault.message}
            for failure in outcome.failures
        ],
    }


def describe_match(match: Match, label: Label) -> Document:
    """Return what a search says of one line, or (line 0) of one path."""
    names = match.path.split(b"/")
    node = describe_node(names[-1], match.attributes)
    found: Document = {
        "path": display_name(match.path),
        "segments": encode_path(names),
        "line": match.line,
        "excerpt": match.excerpt,
        "type": node["type"],
        "size": node["size"],
        "etag": node["etag"],
    }
    return found | {"label": dict(label)} if label else found


def render_nanoseconds(value: int) -> str:
    """Return an RFC 3339 UTC time with all nine digits; a time no calendar has reads as the nearest one it has."""
    seconds, nanoseconds = divmod(min(max(value, _FIRST), _LAST), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()}.{nanoseconds:09d}Z"


_LABEL: Document = {
    "type": "object",
    "description": "Whose words it is and how far it may go; absent for what nobody labelled.",
    "required": ["origin", "sensitivity"],
    "properties": {
        "origin": {"type": "string", "enum": ["owner", "internal", "external"]},
        "sensitivity": {"type": "string", "enum": ["public", "internal", "sensitive"]},
    },
}

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
        "label": _LABEL,
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

MATCHES_SCHEMA: Document = {
    "type": "object",
    "required": ["items", "next", "truncated", "stopped", "searched", "failures"],
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "segments", "line", "excerpt", "type", "size", "etag"],
                "properties": {
                    "path": {"type": "string", "description": "From the root of the branch, for people."},
                    "segments": {"type": "string", "description": "The exact path, percent-encoded, as it goes into a URL."},
                    "line": {"type": "integer", "description": "Counted from 1; 0: the path itself fits."},
                    "excerpt": {"type": "string"},
                    "type": {"type": "string"},
                    "size": {"type": "integer"},
                    "etag": {"type": "string"},
                    "label": _LABEL,
                },
            },
        },
        "next": {"type": ["string", "null"], "description": "The cursor that continues the search."},
        "truncated": {"type": "boolean"},
        "stopped": {"type": "string", "description": "The bound that was met, empty when everything was looked at."},
        "searched": {"type": "object", "additionalProperties": {"type": "integer"}},
        "failures": {"type": "array", "items": {"type": "object"}, "description": "What could not be looked at, the first ones."},
    },
}
