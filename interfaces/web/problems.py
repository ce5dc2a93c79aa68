"""Faults in the words of HTTP: one status for every kind, and problem documents (RFC 9457). Pure.

1. The table is total: a kind without a status is an error found by a test, never a 500 by accident.
2. A gated act did not happen, so it is a refusal (403) and never a 202, which `curl -f` and most clients take for success;
   the member ``gate`` names the question that waits.
3. A spent budget is 403, not 429: repeating later changes nothing.
4. A program tells failures apart by ``code`` (the kind); ``detail`` repeats ``message`` for readers of the standard.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from interfaces.web.asgi import Reply, Request

STATUS: Mapping[Kind, int] = {
    Kind.INVALID: 400,
    Kind.UNAUTHENTICATED: 401,
    Kind.THROTTLED: 429,
    Kind.DENIED: 403,
    Kind.READ_ONLY: 403,
    Kind.GATED: 403,
    Kind.NOT_FOUND: 404,
    Kind.EXISTS: 409,
    Kind.NOT_A_DIRECTORY: 409,
    Kind.IS_A_DIRECTORY: 409,
    Kind.NOT_EMPTY: 409,
    Kind.INTO_ITSELF: 409,
    Kind.NAME_TOO_LONG: 400,
    Kind.BUDGET: 403,
    Kind.NO_SPACE: 507,
    Kind.TOO_LARGE: 413,
    Kind.CONFLICT: 409,
    Kind.PRECONDITION: 412,
    Kind.KEY_REUSED: 422,
    Kind.EXPIRED: 401,
    Kind.REVOKED: 401,
    Kind.UNSUPPORTED: 501,
    Kind.NOT_PERMITTED: 403,
    Kind.NO_ATTRIBUTE: 404,
    Kind.STALE: 409,
    Kind.LOOP: 409,
    Kind.TOO_MANY_LINKS: 409,
    Kind.BUSY: 423,
    Kind.UNAVAILABLE: 503,
    Kind.CORRUPT: 500,
    Kind.INTERNAL: 500,
}

_ENDED: Mapping[Kind, str] = {Kind.EXPIRED: "the lease has expired", Kind.REVOKED: "the lease was revoked"}
_RETRY: Mapping[str, str] = {"retry-after": "1"}


class Refusal(Fault):
    """A fault of the protocol itself, with the status HTTP has for it and the headers that belong to it."""

    def __init__(self, status: int, kind: Kind, message: str, *, hint: str = "", headers: Mapping[str, str] | None = None) -> None:
        """Refuse with `status` instead of the status of `kind`."""
        super().__init__(kind, message, hint=hint)
        self.status = status
        self.headers = headers or {}


def status_of(fault: Fault) -> int:
    """Return the HTTP status of a fault."""
    return fault.status if isinstance(fault, Refusal) else STATUS[fault.kind]


def headers_of(fault: Fault, challenge: str = "Bearer") -> Mapping[str, str]:
    """Return the headers a fault brings along, names in lower case; `challenge` is the scheme a door asks for (``Basic``, ``Bearer``)."""
    own = fault.headers if isinstance(fault, Refusal) else {}
    if STATUS[fault.kind] == 401:
        return {"www-authenticate": _challenge(challenge, fault.kind), **own}
    if fault.wait:
        return {"retry-after": str(fault.wait), **own}
    return {**_RETRY, **own} if fault.kind in {Kind.BUSY, Kind.UNAVAILABLE} else own


def reply_problem(fault: Fault, request: Request) -> Reply:
    """Return the reply that says a fault as a problem document."""
    document = describe_fault(fault, request.request_id)
    headers = {"content-type": "application/problem+json", "cache-control": "no-store", **headers_of(fault)}
    return Reply(status_of(fault), tuple(headers.items()), render_json(document))


def render_json(document: object) -> bytes:
    """Return a document as JSON text, compactly and in UTF-8."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _challenge(scheme: str, kind: Kind) -> str:
    if scheme == "Basic":
        return 'Basic realm="agent-nas", charset="UTF-8"'
    ended = f', error="invalid_token", error_description="{_ENDED[kind]}"' if kind in _ENDED else ""
    return f'{scheme} realm="agent-nas"{ended}'


def describe_fault(fault: Fault, request_id: str) -> Document:
    """Return the problem document of a fault; members that say nothing are left out."""
    status = status_of(fault)
    optional = {"hint": fault.hint, "policy": fault.policy, "gate": fault.gate}
    return {
        "type": f"urn:agent-nas:fault:{fault.kind.value}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": fault.message,
        "instance": f"urn:agent-nas:request:{request_id}",
        "code": fault.kind.value,
        "message": fault.message,
        **{name: value for name, value in optional.items() if value},
    }


PROBLEM_SCHEMA: Document = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code", "message"],
    "properties": {
        "type": {"type": "string", "description": "One URN for each code."},
        "title": {"type": "string", "description": "The phrase of the status."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "The same as message."},
        "instance": {"type": "string", "description": "Names the request; the access log has the same id."},
        "code": {"type": "string", "enum": [kind.value for kind in Kind]},
        "message": {"type": "string", "description": "What happened, to what."},
        "hint": {"type": "string", "description": "What to do next."},
        "policy": {"type": "string", "description": "The policy line that decided."},
        "gate": {"type": "string", "description": "The question that waits for a person."},
    },
}
