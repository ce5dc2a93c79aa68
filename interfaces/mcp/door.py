"""The door: ``/mcp`` as one ASGI application, streamable HTTP by the official SDK.

1. Every request is authenticated by itself, with Bearer or Basic, so a lease that has ended ends a conversation with its next request.
2. There are no sessions: any worker answers any request, and none has to survive. What a session would be for (a stream of the server's
   own, replay) is refused as the standard allows; changes are followed by ``subscriptions/listen``.
3. A body is bounded in size, depth and time, and is one JSON object whose names are unique, before the SDK sees it.
4. An answer is one document; only a stream of changes is a stream.
5. Where a request comes from is checked by the family's guard, for names and origins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from interfaces.faults import Kind
from interfaces.mcp.server import CALLER, Protocol
from interfaces.mcp.telling import render_fault
from interfaces.port import Control
from interfaces.web.asgi import App, Message, Receive, Request, Scope, Send
from interfaces.web.bodies import read_body
from interfaces.web.credentials import authenticate
from interfaces.web.exchange import Exchange
from interfaces.web.guard import LOOPBACK_NAMES
from interfaces.web.limits import Limits, parse_document
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal

PATHS = frozenset({b"/mcp", b"/mcp/"})
_LISTEN = "subscriptions/listen"


def make_transport(server: Server, limits: Limits, *, streams: bool) -> StreamableHTTPSessionManager:
    """Return the SDK's transport for a server, without sessions; each answer is a stream of events, or one document (a third cheaper)."""
    return StreamableHTTPSessionManager(server, stateless=True, json_response=not streams, max_request_body_size=limits.document_bytes)


class McpDoor:
    """A member of the family."""

    def __init__(
        self,
        control: Control,
        *,
        pool: Pool,
        limits: Limits | None = None,
        names: frozenset[str] | None = LOOPBACK_NAMES,
        version: str = "",
    ) -> None:
        """Serve `control` under the host `names` (None: any) and tell clients the `version`."""
        self._limits = limits or Limits()
        self._protocol = Protocol(control, pool, self._limits.streams)
        self._control = control
        self._pool = pool
        self._exchange = Exchange("mcp", pool, render_fault, names=names)
        server = self._protocol.make_server(version)
        self.transport = make_transport(server, self._limits, streams=False)
        self.streams = make_transport(server, self._limits, streams=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._exchange.hand_over(scope, receive, send, self._prepare)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve while the block runs; enters and leaves in one task."""
        async with AsyncExitStack() as stack:
            for transport in dict.fromkeys((self.transport, self.streams)):
                await stack.enter_async_context(transport.run())
            yield

    def drain(self) -> None:
        """End the streams of changes and begin none."""
        self._protocol.listening.drain()

    async def _prepare(self, request: Request) -> App:
        if request.raw_path not in PATHS:
            raise Refusal(404, Kind.NOT_FOUND, "there is nothing here", hint="MCP is at /mcp")
        if self.transport.stateless and request.method != "POST":
            raise Refusal(
                405, Kind.UNSUPPORTED, f"{request.method} means nothing here", hint="there are no sessions", headers={"allow": "POST"}
            )
        caller = await authenticate(self._control, request, "mcp", self._pool)
        body = await read_body(request, self._limits.document_bytes, self._limits) if request.method == "POST" else b""
        method = parse_document(body, self._limits).get("method")
        return _Replay(self.streams if method == _LISTEN else self.transport, {CALLER: caller}, body)


class _Replay:
    """The SDK's application for a request whose body was read already."""

    def __init__(self, transport: StreamableHTTPSessionManager, more: dict[str, object], body: bytes) -> None:
        self._transport = transport
        self._more = more
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": self._body, "more_body": False}

        await self._transport.handle_request({**scope, **self._more}, replay, send)
