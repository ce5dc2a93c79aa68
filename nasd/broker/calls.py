"""A request to an account's server, with the secret put in at the last hop and taken out of the answer.

1. What is asked was judged before (`trust.requests`) and is judged here again: the broker trusts nobody's judgement with a secret in hand.
2. Of the answer's headers a closed list goes back; of body and headers everything that spells the secret is taken out.
3. An answer in an encoding that nobody asked for is refused: the secret could not be found in it.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from interfaces.faults import Fault, Kind
from nasd.broker.scrubbing import scrub, scrub_text
from nasd.broker.wire import Bounds, Reply, exchange
from trust.accounts import Account, AccountKind
from trust.errors import AccountInvalid
from trust.requests import Request, check_request, holds_secret
from trust.secret import Secret

RETURNED = frozenset(
    {
        "content-disposition",
        "content-language",
        "content-range",
        "content-type",
        "date",
        "etag",
        "last-modified",
        "link",
        "location",
        "retry-after",
        "x-request-id",
    }
)
"""The headers of an answer that go back to the caller, beside those about rate limits."""


def call(account: Account, request: Request, body: bytes, secret: Secret, bounds: Bounds) -> dict[str, Any]:
    """Send a request and return status, headers and body (base64). Raises `Kind.INVALID`, `Kind.UNAVAILABLE`, `Kind.TOO_LARGE`."""
    check(account, request, body)
    headers = {**request.headers, **present(account, secret)}
    try:
        reply = exchange(account.destination, request.method, request.target, headers, body, bounds, account.authorities)
    except ValueError:
        raise _unsendable(account) from None
    return _cleaned(account, reply, secret.reveal())


def check(account: Account, request: Request, body: bytes) -> None:
    """Return when this body belongs to this request and the account lets it be made. Raises `Kind.INVALID`."""
    try:
        check_request(account, request)
    except AccountInvalid as error:
        raise Fault(Kind.INVALID, str(error), hint=f"`nas account show {account.name}` shows what it lets") from None
    if hashlib.sha256(body).hexdigest() != request.body_sha256 or len(body) != request.size:
        raise Fault(Kind.INVALID, "the body is not the one that was decided about", hint="repeat the request")
    if holds_secret(body):
        raise Fault(Kind.DENIED, "the body carries a secret of this appliance, which goes nowhere", hint="take it out")


def present(account: Account, secret: Secret) -> dict[str, str]:
    """Return the header that presents the secret. Raises `Kind.UNAVAILABLE` for one that no header can hold."""
    value = secret.reveal()
    if account.kind is AccountKind.BASIC:
        return {"Authorization": f"Basic {base64.b64encode(account.username.encode() + b':' + value).decode()}"}
    if any(not 0x20 < byte < 0x7F for byte in value):
        raise _unsendable(account)
    if account.kind is AccountKind.HEADER:
        return {account.header: value.decode("ascii")}
    return {"Authorization": f"Bearer {value.decode('ascii')}"}


def _unsendable(account: Account) -> Fault:
    return Fault(
        Kind.UNAVAILABLE, f"the secret of {account.name} has characters that no header can hold", hint="look at what its reference leads to"
    )


def _cleaned(account: Account, reply: Reply, secret: bytes) -> dict[str, Any]:
    encoding = next((value for name, value in reply.headers if name.lower() == "content-encoding"), "identity")
    if encoding.lower() != "identity":
        raise Fault(
            Kind.UNSUPPORTED, f"{account.name} answers in the encoding {encoding[:40]!r}, which was not asked for", hint="ask its operator"
        )
    body, removed = scrub(reply.body, secret)
    headers = [[name.lower(), scrub_text(value, secret)] for name, value in reply.headers if _goes_back(name.lower())]
    return {
        "status": reply.status,
        "headers": headers,
        "body": base64.b64encode(body).decode(),
        "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "removed": removed,
    }


def _goes_back(name: str) -> bool:
    return name in RETURNED or name.startswith(("ratelimit", "x-ratelimit"))
