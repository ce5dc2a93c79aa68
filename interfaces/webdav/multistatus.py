"""Answers that speak of several resources (RFC 4918 section 13). Pure.

1. A resource is one ``response``; its properties are grouped by status, a group without properties is left out.
2. Addresses are absolute paths, percent-encoded, with a slash at the end of a collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

from interfaces.web.asgi import Reply
from interfaces.webdav.faults import XML
from interfaces.webdav.markup import DECLARED, document

HEAD = f'<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus {DECLARED}>\n'
TAIL = "</D:multistatus>\n"


def status_line(status: int) -> str:
    """Return the status line of a part."""
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"


def propstat(status: int, properties: Iterable[str], extra: str = "") -> str:
    """Return properties (elements) under one status."""
    return f"<D:propstat><D:prop>{''.join(properties)}</D:prop><D:status>{status_line(status)}</D:status>{extra}</D:propstat>"


def described(href: str, groups: Mapping[int, Sequence[str]]) -> str:
    """Return the response of a resource with its properties by status."""
    told = "".join(propstat(status, properties) for status, properties in groups.items() if properties)
    return f"<D:response><D:href>{href}</D:href>{told or propstat(200, ())}</D:response>\n"


def failed(href: str, status: int, error: str = "") -> str:
    """Return the response of a resource that something went wrong with; `error` is the precondition, an element."""
    told = f"<D:error>{error}</D:error>" if error else ""
    return f"<D:response><D:href>{href}</D:href><D:status>{status_line(status)}</D:status>{told}</D:response>\n"


def answer(responses: Iterable[str]) -> Reply:
    """Return the reply with these responses."""
    return Reply(207, [XML, ("cache-control", "no-store")], document("multistatus", ["\n", *responses]))
