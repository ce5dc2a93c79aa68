"""Answers of the API that are documents.

1. Documents are rendered once, compactly, with their keys in the order they were made; their entity tag is a digest of those bytes.
2. What an effect answers may hold a secret shown once: no cache may keep it.
"""

from __future__ import annotations

from interfaces.port import Document
from interfaces.web.asgi import Reply, Request
from interfaces.web.conditions import Validators, Verdict, judge, tag_bytes
from interfaces.web.problems import render_json

_JSON = ("content-type", "application/json")


def answer_document(document: Document, status: int, *headers: tuple[str, str]) -> Reply:
    """Return the answer to an effect."""
    return Reply(status, (_JSON, ("cache-control", "no-store"), *headers), render_json(document))


def answer_read(request: Request, document: Document, status: int = 200) -> Reply:
    """Return the answer to a read: the document with its entity tag, or 304 when the client has it."""
    content = render_json(document)
    etag = tag_bytes(content)
    headers = (("etag", etag), ("cache-control", "private, no-cache"))
    if status == 200 and judge(request.method, request.headers, Validators(etag)) is Verdict.NOT_MODIFIED:
        return Reply(304, headers)
    return Reply(status, (_JSON, *headers), content)
