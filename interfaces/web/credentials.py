"""Whom a request speaks for, from its ``Authorization`` header or from the certificate its client showed to a declared proxy.

1. A secret travels in ``Authorization`` and nowhere else: never in a path, a query or a cookie.
2. ``Bearer`` carries a lease, a token or what an issuer says of somebody (a JWT); ``Basic`` a lease id or a principal's name with a secret
   of theirs, or a password derived from one, or a password for an application.
3. A certificate counts where there is no ``Authorization``. Only `vouching` puts one on a request.
4. What cannot be read is as unauthenticated as what is wrong, and says no more.
5. What may have to ask an issuer runs in the pool; everything else is a few hashes and runs on the event loop.
"""

from __future__ import annotations

import binascii

from interfaces.faults import Fault, Kind
from interfaces.port import Arrival, Caller, Control
from interfaces.web.asgi import CERTIFICATE, Request
from interfaces.web.pool import Pool

MAX_CREDENTIALS = 8192
"""Characters of an ``Authorization`` header that are looked at."""
_JWT = "eyJ"
"""How every JWT begins: the base64url of ``{"``."""


async def authenticate(control: Control, request: Request, door: str, pool: Pool) -> Caller:
    """Return whom a request to a door speaks for. Raises as `Control.authenticate`."""
    arrival = read_arrival(request, door)
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    credentials = credentials.strip()
    if not scheme and arrival.certificate:
        return control.authenticate_certificate(arrival)
    if not credentials or len(credentials) > MAX_CREDENTIALS:
        raise _missing()
    match scheme.lower():
        case "bearer" if credentials.startswith(_JWT):
            return await pool.run(control.authenticate, credentials, arrival)
        case "bearer":
            return control.authenticate(credentials, arrival)
        case "basic":
            return control.authenticate_basic(*read_basic(credentials), arrival)
        case _:
            raise _missing()


def read_arrival(request: Request, door: str) -> Arrival:
    """Return where a request came in."""
    client = request.scope.get("client")
    return Arrival(door, client[0] if client else "", request.scope.get("extensions", {}).get(CERTIFICATE, b""))


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
