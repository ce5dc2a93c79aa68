"""Conditional requests and ranges (RFC 9110 sections 13 and 14). Pure.

1. Every validator of this door is strong; a weak one sent by a client (``W/"x"``) never matches where strength counts.
2. ``If-Match`` and ``If-None-Match`` win over the dates; dates have whole seconds and compare only while no tag is sent.
3. A condition that cannot be understood fails the request: a write never happens because its guard was misspelled.
4. Several ranges are answered with the whole, which the standard allows and every client accepts.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes
from interfaces.web.problems import Refusal

_TAG = re.compile(r'\s*(W/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)')
_RANGE = re.compile(r"bytes=\s*(\d{0,19})-(\d{0,19})\s*")
_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Validators:
    """What identifies one state of a resource: its entity tag, and the second it last changed (None: not told)."""

    etag: str
    modified: int | None = None


class Verdict(enum.Enum):
    """What the conditions of a request say."""

    PROCEED = "proceed"
    NOT_MODIFIED = "not-modified"
    FAILED = "failed"


def tag_bytes(content: bytes) -> str:
    """Return the entity tag of a rendered document."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def tag_attributes(attributes: Attributes) -> str:
    """Return the entity tag of a node: it changes with identity, size and every change of content or attributes."""
    return f'"{attributes.node:x}-{attributes.size:x}-{attributes.mtime_ns:x}-{attributes.ctime_ns:x}"'


def validators_of(attributes: Attributes) -> Validators:
    """Return the validators of a node."""
    return Validators(tag_attributes(attributes), attributes.mtime_ns // 1_000_000_000)


def render_date(seconds: int) -> str:
    """Return an HTTP date."""
    return formatdate(seconds, usegmt=True)


def judge(method: str, headers: Mapping[str, str], current: Validators | None) -> Verdict:
    """Return what the conditional headers say about a resource in its `current` state (None: there is none)."""
    if not _may_proceed(headers, current):
        return Verdict.FAILED
    if _already_known(headers, current):
        return Verdict.NOT_MODIFIED if method in _SAFE else Verdict.FAILED
    if method in _SAFE and "if-none-match" not in headers and not _changed_since(headers.get("if-modified-since"), current):
        return Verdict.NOT_MODIFIED
    return Verdict.PROCEED


def require(method: str, headers: Mapping[str, str], current: Validators | None) -> None:
    """Raise `Kind.PRECONDITION` unless the conditions of a write hold."""
    if judge(method, headers, current) is not Verdict.PROCEED:
        raise Fault(Kind.PRECONDITION, "the file is not in the state the request names", hint="read it again, then repeat with its ETag")


def select_range(headers: Mapping[str, str], current: Validators, size: int) -> tuple[int, int] | None:
    """Return the half-open range of bytes asked for, or None for the whole. Raises a 416 `Refusal` when nothing of it exists."""
    match = _RANGE.fullmatch(headers.get("range", ""))
    if match is None or not any(match.groups()) or not _range_applies(headers.get("if-range"), current):
        return None
    first, last = match.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if first and last and int(last) < start:
        return None
    if start >= size or start >= end:
        raise Refusal(416, Kind.INVALID, f"the file has {size} bytes", hint="ask for less", headers={"content-range": f"bytes */{size}"})
    return start, end


def _may_proceed(headers: Mapping[str, str], current: Validators | None) -> bool:
    if (value := headers.get("if-match")) is not None:
        return current is not None and (value.strip() == "*" or (False, current.etag) in _tags(value))
    since = headers.get("if-unmodified-since")
    return since is None or (current is not None and not _changed_since(since, current))


def _already_known(headers: Mapping[str, str], current: Validators | None) -> bool:
    value = headers.get("if-none-match")
    if value is None or current is None:
        return False
    return value.strip() == "*" or any(tag == current.etag for _, tag in _tags(value))


def _tags(value: str) -> list[tuple[bool, str]]:
    """Return the (weak, tag) pairs of a list of entity tags; one that cannot be read refuses the request (rule 3)."""
    found: list[tuple[bool, str]] = []
    position = 0
    while position < len(value):
        match = _TAG.match(value, position)
        if match is None:
            raise Fault(Kind.INVALID, f"{value!r} is not a list of entity tags", hint='write tags in quotes: "tag", "tag"')
        found.append((match[1] is not None, match[2]))
        position = match.end()
    return found


def _changed_since(date: str | None, current: Validators | None) -> bool:
    """Tell whether a resource changed after a date; a date nobody sent or that is none says nothing and counts as changed."""
    if date is None or current is None or current.modified is None:
        return True
    try:
        return current.modified > parsedate_to_datetime(date).timestamp()
    except ValueError:
        return True


def _range_applies(if_range: str | None, current: Validators) -> bool:
    if if_range is None:
        return True
    if if_range.startswith('"'):
        return if_range == current.etag
    # A date has whole seconds: a second change within the same second would splice two states of the file.
    return False
