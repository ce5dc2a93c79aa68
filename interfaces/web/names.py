"""Paths of a URL as tuples of names. Pure.

1. A path is read once, from the bytes of the request line, into names; nothing later splits, joins or normalises it.
2. A name is any bytes but empty, ``.``, ``..`` and those with ``/`` or NUL; every other byte travels percent-encoded.
3. What is written twice differently (``%41`` and ``A``) is one name; an escape that is none (``%zz``) is refused, never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from interfaces.faults import Fault, Kind

Names = tuple[bytes, ...]
"""The names of a path from the root; the root itself is empty."""

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_MAX_NAMES = 1024


def decode_segment(raw: bytes) -> bytes:
    """Return the bytes a percent-encoded segment stands for. Raises `Kind.INVALID` for a broken escape."""
    if _BAD_ESCAPE.search(raw):
        raise Fault(Kind.INVALID, f"{raw.decode('latin-1')!r} has a percent sign that starts no escape", hint="write a percent sign as %25")
    return unquote_to_bytes(raw)


def decode_text(raw: bytes) -> str:
    """Return the text a percent-encoded segment stands for. Raises `Kind.INVALID` when it is not UTF-8."""
    try:
        return decode_segment(raw).decode()
    except UnicodeDecodeError as error:
        raise Fault(Kind.INVALID, f"{raw.decode('latin-1')!r} is not UTF-8 text", hint="only file names may be arbitrary bytes") from error


def split_path(raw: bytes) -> Names:
    """Return the names of a percent-encoded path; empty for the root. Raises `Kind.INVALID`, `Kind.NAME_TOO_LONG`."""
    if not raw:
        return ()
    segments = raw.split(b"/")
    if len(segments) > _MAX_NAMES:
        raise Fault(Kind.NAME_TOO_LONG, f"the path has more than {_MAX_NAMES} names")
    return tuple(_checked_name(decode_segment(segment)) for segment in segments)


def encode_segment(name: bytes) -> str:
    """Return a name as one segment of a URL."""
    return quote_from_bytes(name, safe="")


def encode_path(names: Iterable[bytes]) -> str:
    """Return names as the path of a URL, without a leading slash."""
    return "/".join(map(encode_segment, names))


def display_name(name: bytes) -> str:
    r"""Return a name for people: text, with bytes that are not UTF-8 as ``\xNN``."""
    return name.decode("utf-8", "backslashreplace")


def _checked_name(name: bytes) -> bytes:
    if name in {b"", b".", b".."} or b"/" in name or b"\0" in name:
        raise Fault(
            Kind.INVALID,
            f"{display_name(name)!r} is not a name a file can have",
            hint="write one percent-encoded name between two slashes; no empty names, '.', '..', encoded slashes or zero bytes",
        )
    return name
