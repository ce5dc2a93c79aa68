"""Conditional requests and ranges (RFC 9110 sections 13 and 14). Pure.

1. Every validator of this door is strong; a weak one sent by a client (``W/"x"``) never matches where strength counts.
2. ``If-Match`` and ``If-None-Match`` win over the dates; dates have whole seconds and compare only while no tag is sent.
3. A condition that cannot be understood fails the request: a write never happens because its guard was misspelled.
4. Ranges that overlap, go backwards in many steps or are more than `MAX_RANGES` are no ranges: the whole file costs less.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from itertools import pairwise

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes
from interfaces.web.problems import Refusal

_TAG = re.compile(r'\s*(W/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)')
_PLAIN = re.compile(rb"[0-9A-Za-z._-]+")
_RANGE = re.compile(r"[ \t]*([0-9]{0,19})-([0-9]{0,19})[ \t]*")
_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Validators:
    """What identifies one state of a resource: its entity tag, and the second it last changed (None: not told)."""

    etag: str
    modified: int | None = None


Range = tuple[int, int]
"""A half-open range of bytes, never empty."""

MAX_RANGES = 16
"""How many ranges one answer has at most."""


class Verdict(enum.Enum):
    """What the conditions of a request say."""

    PROCEED = "proceed"
    NOT_MODIFIED = "not-modified"
    FAILED = "failed"


def tag_bytes(content: bytes) -> str:
    """Return the entity tag of a rendered document."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def tag_of(attributes: Attributes) -> str:
    """Return the strong entity tag of a node: of its content where it has any, else of its identity and times."""
    content = attributes.content
    if content:
        return f'"{content.decode("ascii") if _PLAIN.fullmatch(content) else content.hex()}"'
    return f'"{attributes.node:x}-{attributes.size:x}-{attributes.mtime_ns:x}-{attributes.ctime_ns:x}"'


def validators_of(attributes: Attributes) -> Validators:
    """Return the validators of a node."""
    return Validators(tag_of(attributes), attributes.mtime_ns // 1_000_000_000)


@lru_cache(1024)
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


def select_ranges(headers: Mapping[str, str], current: Validators, size: int) -> list[Range]:
    """Return the ranges asked for in the order they were, empty for the whole. Raises a 416 `Refusal` when nothing of them exists."""
    asked = headers.get("range")
    if asked is None or not _range_applies(headers.get("if-range"), current):
        return []
    unit, _, specs = asked.partition("=")
    if unit.strip().lower() != "bytes" or specs.count(",") >= MAX_RANGES:
        return []
    found = [_read_range(spec, size) for spec in specs.split(",")]
    if any(spec is None for spec in found):
        return []
    ranges = [span for span in found if span]
    if not ranges:
        raise Refusal(416, Kind.INVALID, f"the file has {size} bytes", hint="ask for less", headers={"content-range": f"bytes */{size}"})
    return ranges if _worth_it(ranges, size) else []


def _read_range(spec: str, size: int) -> Range | tuple[()] | None:
    """Return a range, an empty tuple for one outside of the file, None for what is no range (RFC 9110 section 14.1.1)."""
    match = _RANGE.fullmatch(spec)
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if first and last and int(last) < int(first):
        return None
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (start, end) if start < end else ()


def _worth_it(ranges: list[Range], size: int) -> bool:
    """Tell whether several ranges are fewer bytes than the whole, and none is sent twice."""
    if len(ranges) == 1:
        return True
    ordered = sorted(ranges)
    apart = all(one[1] <= other[0] for one, other in pairwise(ordered))
    return apart and sum(end - start for start, end in ranges) < size


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
