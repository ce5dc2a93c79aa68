"""Answers of the API that are not streams of a file.

1. Documents are rendered once, compactly, with their keys in the order they were made; their entity tag is a digest of those bytes.
2. What an effect answers may hold a secret shown once: no cache may keep it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from interfaces.faults import Fault
from interfaces.port import Document
from interfaces.web.conditions import Validators, Verdict, judge, tag_bytes
from interfaces.web.problems import describe_fault, headers_of, status_of


def render(document: object) -> bytes:
    """Return a document as JSON text."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def answer_document(document: Document, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to an effect."""
    return Response(render(document), status, {"cache-control": "no-store", **(headers or {})}, "application/json")


def answer_read(request: Request, document: Document, status: int = 200) -> Response:
    """Return the answer to a read: the document with its entity tag, or 304 when the client has it."""
    content = render(document)
    etag = tag_bytes(content)
    headers = {"etag": etag, "cache-control": "private, no-cache"}
    if status == 200 and judge(request.method, request.headers, Validators(etag)) is Verdict.NOT_MODIFIED:
        return Response(b"", 304, headers)
    return Response(content, status, headers, "application/json")


def answer_fault(fault: Fault, request_id: str) -> Response:
    """Return the problem document of a fault."""
    content = render(describe_fault(fault, request_id))
    return Response(content, status_of(fault), {"cache-control": "no-store", **headers_of(fault)}, "application/problem+json")


class Stream(Response):
    """An answer made piece by piece, until it ends or its client leaves; what it holds is released exactly once."""

    def __init__(self, pieces: AsyncIterator[bytes], release: Callable[[], None], status: int, headers: Mapping[str, str]) -> None:
        """Send `pieces`; call `release` at the end, whatever the end."""
        self.status_code = status
        self.background = None
        self.init_headers(headers)
        self._pieces = pieces
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        gone = asyncio.create_task(_wait_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._pieces:
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            self._release()


async def _wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
