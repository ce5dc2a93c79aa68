"""Requests and replies of the family, over the server's interface (ASGI 3).

1. A request is read once from what the server hands over: names of headers are lower case, repeats are joined by a comma, the path and the
   query are the bytes of the request line.
2. A reply is a value until it is sent. What it holds open is released exactly once, whatever happens to it.
3. A reply made of pieces is sent as its client takes it, one piece in memory; a client that left ends it with `Disconnected`. A piece
   can be an `Extent`, which the kernel sends; only where `Request.sends_extents` says so.
4. Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from interfaces.faults import Fault, Kind

Scope = MutableMapping[str, Any]
"""What the server says of a connection and a request."""

Message = MutableMapping[str, Any]
"""One step of a conversation with the server."""

Receive = Callable[[], Awaitable[Message]]
"""Waits for the next message from the client."""

Send = Callable[[Message], Awaitable[None]]
"""Hands a message to the client, waiting while it takes none."""

App = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

Headers = Mapping[str, str]
"""Header fields by lower-case name."""

SENDING = "agent-nas.send_extent"
"""The extension of the server that has the kernel send parts of files."""

CERTIFICATE = "agent-nas.client_certificate"
"""The extension of a request whose client a declared proxy knows by this certificate (DER)."""

MAX_PARAMETERS = 256

_NO_BREAKS = bytes.maketrans(b"\r\n\0", b"   ")
_NO_LENGTH = frozenset({204, 304})


class Disconnected(Exception):
    """The client left before its request was read or its answer sent."""


@dataclass(frozen=True, slots=True)
class Extent:
    """`count` bytes at `offset` of a descriptor, which stays open and unchanged until the next piece is asked for."""

    descriptor: int
    offset: int
    count: int


Pieces = AsyncIterator[bytes | Extent] | AsyncIterator[bytes]
"""The content of a reply, piece by piece."""


class Request:
    """One request. `request_id` is the one its client chose when that is short and plain, else one of the server's."""

    __slots__ = ("_parameters", "headers", "method", "query", "raw_path", "receive", "request_id", "scope")

    def __init__(self, scope: Scope, receive: Receive, request_id: str = "") -> None:
        """Read the head of a request; its body is still with the server."""
        self.scope = scope
        self.receive = receive
        self.request_id = request_id
        self.method: str = scope["method"]
        self.raw_path: bytes = scope["raw_path"]
        self.query: bytes = scope["query_string"]
        self.headers: Headers = read_headers(scope["headers"])
        self._parameters: dict[str, str] | None = None

    @property
    def parameters(self) -> dict[str, str]:
        """Return the query by name. Raises `Kind.INVALID` when it is not text, or gives one name twice."""
        if self._parameters is None:
            self._parameters = read_parameters(self.query) if self.query else {}
        return self._parameters

    @property
    def sends_extents(self) -> bool:
        """Tell whether the server can have the kernel send parts of files on this connection."""
        return SENDING in self.scope.get("extensions", {})

    @property
    def scheme(self) -> str:
        """Return ``http`` or ``https``, as the client sees it."""
        scheme: str = self.scope["scheme"]
        return scheme


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: `body` whole, or `pieces` one after the other. `release` is called once nothing of it is needed any more."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    pieces: Pieces | None = None
    release: Callable[[], None] | None = None


def read_headers(fields: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return header fields by lower-case name; the values of a name that repeats are joined by a comma, as RFC 9110 section 5.3 has it."""
    found: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def read_parameters(query: bytes) -> dict[str, str]:
    """Return a query by name. Raises `Kind.INVALID`; nobody ever has to guess which of two values counts."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise Fault(
            Kind.INVALID, f"the query cannot be read: {error}", hint="write name=value&name=value, percent-encoded UTF-8"
        ) from error
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise Fault(Kind.INVALID, f"the query gives {next(name for name in names if names.count(name) > 1)!r} twice", hint="give it once")
    return found


async def send_reply(request: Request, send: Send, reply: Reply) -> int:
    """Send a reply and return how many bytes of content went out. Raises `Disconnected`, and what the pieces raise."""
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": _fields(request, reply)})
        if request.method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return 0
        if reply.pieces is not None:
            return await _send_pieces(request, send, reply.pieces)
        await send({"type": "http.response.body", "body": reply.body})
        return len(reply.body)
    finally:
        if reply.release is not None:
            reply.release()


def _fields(request: Request, reply: Reply) -> list[tuple[bytes, bytes]]:
    fields = [(name.encode("latin-1"), field_value(value)) for name, value in reply.headers]
    fields.append((b"x-request-id", request.request_id.encode()))
    fields.append((b"x-content-type-options", b"nosniff"))
    if reply.pieces is None and reply.status not in _NO_LENGTH and not any(name == b"content-length" for name, _ in fields):
        fields.append((b"content-length", b"%d" % len(reply.body)))
    return fields


def field_value(text: str) -> bytes:
    """Return a header's value as it travels: a line break or NUL, which would end the header, is a blank (RFC 9110 section 5.5), and what
    Latin-1 has no byte for is a question mark. Doors say such things otherwise; whatever slips through here splits no answer.
    """
    value = text.encode("latin-1", "replace")
    return value.translate(_NO_BREAKS) if not text.isprintable() else value


async def _send_pieces(request: Request, send: Send, pieces: Pieces) -> int:
    gone = asyncio.create_task(_wait_disconnected(request.receive))
    sent = 0
    try:
        async for piece in pieces:
            if gone.done():
                raise Disconnected
            if isinstance(piece, Extent):
                await request.scope["extensions"][SENDING](piece)
                sent += piece.count
            else:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                sent += len(piece)
            # Neither pieces nor sending have to wait for anything: others, and the one who watches for the client, get their turn here.
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})
        return sent
    finally:
        await _cancelled(gone)
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


async def _wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
