"""Ranges of an object: the ``Range`` header, part numbers, and ranges of a copy's source. Pure.

1. One range of bytes is answered; several, or a header that is none, with the whole object, as S3 does.
2. A range of which nothing exists is ``InvalidRange``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from interfaces.s3.faults import S3Fault
from interfaces.s3.sidecars import Part

_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")
_SOURCE = re.compile(r"bytes=(\d{1,19})-(\d{1,19})")


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes from `start` up to `end` of an object of `size` bytes."""

    start: int
    end: int
    size: int

    @property
    def header(self) -> str:
        """Return the ``Content-Range`` of it."""
        return f"bytes {self.start}-{self.end - 1}/{self.size}"


def read_range(value: str | None, size: int) -> Span | None:
    """Return the range a header asks for, None for the whole. Raises ``InvalidRange``."""
    match = _RANGE.fullmatch(value.strip()) if value else None
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if first and last and int(last) < int(first):
        return None
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= end:
        raise S3Fault("InvalidRange", elements={"RangeRequested": value or "", "ActualObjectSize": str(size)})
    return Span(start, end, size)


def read_part_range(number: int, parts: Sequence[Part], size: int) -> Span:
    """Return the bytes of one part; an object written at once is its own first part. Raises ``InvalidPart``."""
    if not parts:
        if number == 1:
            return Span(0, size, size)
        raise S3Fault("InvalidPart", status=400)
    start = 0
    for part in parts:
        if part.number == number:
            return Span(start, start + part.size, size)
        start += part.size
    raise S3Fault("InvalidPart", status=400)


def read_part_number(text: str) -> int:
    """Return a part number. Raises ``InvalidArgument``."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 10_000):
        raise S3Fault("InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
    return int(text)


def read_source_range(value: str | None, size: int) -> Span:
    """Return the part of a source that a part is copied from. Raises ``InvalidArgument``, ``InvalidRange``."""
    if value is None:
        return Span(0, size, size)
    match = _SOURCE.fullmatch(value.strip())
    if match is None or int(match[2]) < int(match[1]):
        raise S3Fault(
            "InvalidArgument",
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the "
            "first and last bytes to copy",
        )
    if int(match[2]) >= size:
        raise S3Fault("InvalidRange", "The specified copy source range is not valid for the source object", status=416)
    return Span(int(match[1]), int(match[2]) + 1, size)
