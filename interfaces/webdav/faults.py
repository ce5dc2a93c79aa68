"""Faults in the words of WebDAV: one status for every kind, and the precondition an error names. Pure.

1. The table is total: a kind without a status is an error found by a test.
2. 423 says that a WebDAV lock is in the way and nothing else; what is busy for another reason is 503.
3. Where something is in the way of a name, 405 answers MKCOL and PUT; a missing directory above a name is 409, decided where it is noticed.
4. A spent budget is told as a spent quota (507) to who wants to write, so that a desktop says the disk is full.
5. An error's body is XML: the precondition of the standard where there is one, then kind, message and hint for people.
"""

from __future__ import annotations

from collections.abc import Mapping

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import Reply, Request
from interfaces.web.problems import STATUS as HTTP_STATUS
from interfaces.web.problems import Refusal, headers_of
from interfaces.webdav.markup import document, plain

XML = ("content-type", "application/xml; charset=utf-8")
_PRIVATE = ("cache-control", "no-store")
_WRITES = frozenset({"PUT", "MKCOL", "COPY", "MOVE", "PROPPATCH", "LOCK"})

STATUS: Mapping[Kind, int] = {
    **HTTP_STATUS,
    Kind.EXISTS: 405,
    Kind.IS_A_DIRECTORY: 405,
    Kind.INTO_ITSELF: 403,
    Kind.BUSY: 503,
    Kind.LOOP: 404,
}

_AUTHENTICATE = 'Basic realm="agent-nas", charset="UTF-8", Bearer realm="agent-nas"'


class Objection(Refusal):
    """A refusal that names a precondition of the standard; `element` is its element, whole."""

    def __init__(
        self, status: int, kind: Kind, message: str, element: str, *, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Refuse with `status` because `element` does not hold."""
        super().__init__(status, kind, message, hint=hint, headers=headers)
        self.element = element


def status_of(fault: Fault, method: str) -> int:
    """Return the status that tells a fault to a method."""
    if isinstance(fault, Refusal):
        return fault.status
    if fault.kind is Kind.BUDGET and method in _WRITES:
        return 507
    return STATUS[fault.kind]


def element_of(fault: Fault, method: str) -> str:
    """Return the precondition a fault is about as an element, empty when the standard has none."""
    if isinstance(fault, Objection):
        return fault.element
    if fault.kind is Kind.NO_SPACE:
        return "<D:sufficient-disk-space/>"
    if fault.kind is Kind.BUDGET and method in _WRITES:
        return "<D:quota-not-exceeded/>"
    return ""


def render_fault(fault: Fault, request: Request) -> Reply:
    """Return the reply that tells a fault."""
    status = status_of(fault, request.method)
    headers = dict(headers_of(fault))
    if "www-authenticate" in headers:
        headers["www-authenticate"] = _AUTHENTICATE
    optional = {"hint": fault.hint, "policy": fault.policy, "gate": fault.gate}
    told = {"code": fault.kind.value, "message": fault.message, **{name: text for name, text in optional.items() if text}}
    parts = [
        element_of(fault, request.method),
        *(f'<N:{name} xmlns:N="urn:agent-nas">{plain(text)}</N:{name}>' for name, text in told.items()),
    ]
    return Reply(status, [XML, _PRIVATE, *headers.items()], document("error", parts))


def missing_parent(title: str) -> Refusal:
    """Return the refusal of a change below what is no directory, or is not there for the caller."""
    return Refusal(409, Kind.NOT_FOUND, f"{title}: the directory above it does not exist", hint="make it first, with MKCOL")
