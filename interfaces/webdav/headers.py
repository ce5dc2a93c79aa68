"""The headers WebDAV adds to HTTP (RFC 4918 section 10), but for ``If``. Pure.

1. A header that is there and cannot be understood refuses the request: nothing is moved or deleted on a guess.
2. A header that is not there means what the standard says, which for ``Depth`` depends on the method: the caller names it.
3. ``Destination`` is a place on this server or nothing: the scheme is not looked at (a proxy may have ended TLS), the host is.
4. A timeout is what the client asked for first that is a number, cut to `MAX_SECONDS`; a lock without an end does not exist.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from interfaces.faults import Fault, Kind
from interfaces.web.names import Names, split_path
from interfaces.web.problems import Refusal

DEFAULT_SECONDS = 3600
MAX_SECONDS = 86_400

_TIMEOUT = re.compile(r"second-(\d{1,10})")
_CODED = re.compile(r"<([^<>\s]{1,512})>")
_LENGTH = re.compile(r"\d{1,19}")


class Depth(enum.Enum):
    """How far below a collection a request reaches."""

    ZERO = "0"
    ONE = "1"
    INFINITY = "infinity"


def read_depth(headers: Mapping[str, str], absent: Depth, allowed: frozenset[Depth]) -> Depth:
    """Return the depth of a request. Raises `Kind.INVALID` for one the method does not know."""
    text = headers.get("depth")
    if text is None:
        return absent
    depth = {member.value: member for member in Depth}.get(text.strip().lower())
    if depth is None or depth not in allowed:
        known = ", ".join(sorted(member.value for member in allowed))
        raise Fault(Kind.INVALID, f"Depth: {text!r} means nothing here", hint=f"send one of {known}")
    return depth


def read_overwrite(headers: Mapping[str, str]) -> bool:
    """Tell whether what stands at the destination may be replaced. Raises `Kind.INVALID`."""
    text = headers.get("overwrite", "T").strip().upper()
    if text not in {"T", "F"}:
        raise Fault(Kind.INVALID, f"Overwrite: {text!r} is neither T nor F")
    return text == "T"


def read_timeout(headers: Mapping[str, str]) -> int:
    """Return for how many seconds a lock is asked for, between 1 and `MAX_SECONDS`."""
    for choice in headers.get("timeout", "").lower().split(","):
        choice = choice.strip()
        if choice == "infinite":
            return MAX_SECONDS
        if match := _TIMEOUT.fullmatch(choice):
            return max(1, min(int(match[1]), MAX_SECONDS))
    return DEFAULT_SECONDS


def read_lock_token(headers: Mapping[str, str]) -> str:
    """Return the token in ``Lock-Token``. Raises `Kind.INVALID`."""
    match = _CODED.fullmatch(headers.get("lock-token", "").strip())
    if match is None:
        raise Fault(Kind.INVALID, "the request names no lock", hint="send Lock-Token: <the token that LOCK answered>")
    return match[1]


def read_destination(headers: Mapping[str, str], prefix: bytes) -> Names:
    """Return the names below `prefix` that ``Destination`` points to.

    Raises `Kind.INVALID`, and a 502 `Refusal` for a place that is not on this server.
    """
    text = headers.get("destination", "").strip()
    try:
        parts = urlsplit(text)
        own = not parts.netloc or _same_host(parts.scheme, parts.netloc, headers.get("host", ""))
        path = raw_path(parts.path)
    except ValueError as error:
        raise _bad_destination(text) from error
    if not text or parts.query or parts.fragment or not parts.path.startswith("/") or bool(parts.netloc) != bool(parts.scheme):
        raise _bad_destination(text)
    names = strip_prefix(path, prefix)
    if not own or names is None:
        raise Refusal(
            502, Kind.UNSUPPORTED, f"{text} is not on this server", hint="copy through the client, or name a place below the same address"
        )
    return names


def raw_path(path: str) -> bytes:
    """Return the bytes of a path in a header, as the client wrote them. Raises `ValueError` for what no header can hold."""
    # Headers are bytes, read as Latin-1; some clients write UTF-8 where the standard wants it percent-encoded.
    return path.encode("latin-1")


def strip_prefix(raw: bytes, prefix: bytes) -> Names | None:
    """Return the names of a percent-encoded path below `prefix`, one slash at the end ignored; None when it lies elsewhere.

    Raises `Kind.INVALID`, `Kind.NAME_TOO_LONG`.
    """
    if raw != prefix and not raw.startswith(prefix + b"/"):
        return None
    return split_path(raw[len(prefix) + 1 :].removesuffix(b"/"))


def read_expected_length(headers: Mapping[str, str]) -> int | None:
    """Return how many bytes of content a client announces in any of the ways there are, None when it does not. Raises `Kind.INVALID`.

    Finder sends its uploads in chunks and says the length in a header of its own: a proxy that drops such a body would leave an empty
    file behind, unless somebody compares.
    """
    text = headers.get("x-expected-entity-length")
    if text is None:
        return None
    if _LENGTH.fullmatch(text.strip()) is None:
        raise Fault(Kind.INVALID, f"X-Expected-Entity-Length: {text!r} is not a number of bytes")
    return int(text)


def _same_host(scheme: str, netloc: str, host: str) -> bool:
    if scheme not in {"http", "https"} or "@" in netloc:
        return False
    return _without_default_port(netloc) == _without_default_port(host)


def _without_default_port(netloc: str) -> str:
    name, colon, port = netloc.lower().rpartition(":")
    return name if colon and port in {"80", "443"} else netloc.lower()


def _bad_destination(text: str) -> Fault:
    return Fault(
        Kind.INVALID, f"Destination: {text!r} is not an address", hint="send the absolute URL, or the absolute path, to copy or move to"
    )
