"""Whom a request speaks for, from its ``Authorization`` header.

1. A secret travels in ``Authorization`` and nowhere else: never in a path, a query or a cookie.
2. ``Bearer`` carries a lease or a token; ``Basic`` a lease id or a principal's name with that secret, or the password derived from it.
3. What cannot be read is as unauthenticated as what is wrong, and says no more.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping

from interfaces.faults import Fault, Kind
from interfaces.port import Caller, Control

MAX_CREDENTIALS = 8192
"""Characters of an ``Authorization`` header that are looked at."""


def authenticate(control: Control, headers: Mapping[str, str]) -> Caller:
    """Return whom a request speaks for. Raises `Kind.UNAUTHENTICATED`, `Kind.EXPIRED`, `Kind.REVOKED`."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    credentials = credentials.strip()
    if not credentials or len(credentials) > MAX_CREDENTIALS:
        raise _missing()
    match scheme.lower():
        case "bearer":
            return control.authenticate(credentials)
        case "basic":
            return control.authenticate_basic(*read_basic(credentials))
        case _:
            raise _missing()


def read_basic(credentials: str) -> tuple[str, str]:
    """Return user and password of Basic credentials (RFC 7617, UTF-8). Raises `Kind.UNAUTHENTICATED`."""
    try:
        user, colon, password = binascii.a2b_base64(credentials.encode("ascii"), strict_mode=True).decode().partition(":")
    except ValueError:
        raise _missing() from None
    if not colon or not user or not password:
        raise _missing()
    return user, password


def _missing() -> Fault:
    return Fault(
        Kind.UNAUTHENTICATED,
        "the request carries no secret",
        hint="send Authorization: Bearer with what `nas run start` or `nas token issue` printed",
    )
