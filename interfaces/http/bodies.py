"""Reading the document that a client sends."""

from __future__ import annotations

from typing import Any

from interfaces.faults import Kind
from interfaces.web.asgi import Request
from interfaces.web.bodies import read_body
from interfaces.web.limits import Limits, parse_document
from interfaces.web.problems import Refusal


async def read_document(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object a request carries, empty when it carries nothing. Raises a 415 `Refusal`, and as `read_body` does."""
    text = await read_body(request, limits.document_bytes, limits)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if text and media != "application/json":
        # Browsers send any other type across origins without asking first.
        raise Refusal(415, Kind.INVALID, f"the body is {media or 'of no declared type'}", hint="send Content-Type: application/json")
    return parse_document(text, limits)
