"""The door: one ASGI application over `Control`.

1. A request is authenticated before anything of it is looked at; ``/healthz``, ``/readyz``, ``/openapi.json`` and where to log in are the
   only things a stranger is told.
2. A fault is said as a problem document (RFC 9457).
3. Everything runs on the event loop of the server except calls of the port that may take long, which go to the pool.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from interfaces.faults import Fault, Kind
from interfaces.http.events import Events
from interfaces.http.files import Files, is_files_path
from interfaces.http.openapi import describe_api
from interfaces.http.operations import Operations
from interfaces.http.responses import answer_read
from interfaces.port import Control, Document
from interfaces.web.asgi import Receive, Reply, Request, Scope, Send
from interfaces.web.credentials import authenticate
from interfaces.web.exchange import Exchange
from interfaces.web.guard import LOOPBACK_NAMES
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal, reply_problem

METADATA = b"/.well-known/oauth-protected-resource"
"""Where a server tells which issuers it believes (RFC 9728)."""
_READING = frozenset({"GET", "HEAD"})


class Door:
    """The API, as a member of the family."""

    def __init__(
        self,
        control: Control,
        *,
        version: str,
        pool: Pool,
        limits: Limits | None = None,
        names: frozenset[str] | None = LOOPBACK_NAMES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Serve `control` under the host `names` (None: any), with the family's pool."""
        self._control = control
        self._pool = pool
        limits = limits or Limits()
        self._exchange = Exchange("http", pool, reply_problem, names=names, clock=clock)
        self._events = Events(control, limits, clock)
        self._files = Files(control, limits, pool, clock)
        self._operations = Operations(control, limits, pool)
        self._api = describe_api(control.operations(), version)
        self._public = {
            b"/healthz": self._answer_health,
            b"/readyz": self._answer_ready,
            b"/openapi.json": self._answer_api,
            METADATA: self._answer_issuers,
            METADATA + b"/mcp": self._answer_issuers,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._exchange.serve(scope, receive, send, self._answer)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve while the block runs."""
        try:
            yield
        finally:
            self._events.close()

    def drain(self) -> None:
        """Let event streams end; requests under way are finished by the server."""
        self._events.drain()

    async def _answer(self, request: Request) -> Reply:
        path = request.raw_path
        if path in self._public:
            return await self._public[path](request)
        caller = await authenticate(self._control, request, "http", self._pool)
        if is_files_path(path):
            return await self._files.answer(request, caller)
        if path == b"/v1/events":
            _require_method(request, frozenset({"GET"}))
            return await self._events.answer(request, caller)
        return await self._operations.answer(request, caller)

    async def _answer_health(self, request: Request) -> Reply:
        _require_method(request)
        return answer_read(request, {"status": "ok"})

    async def _answer_ready(self, request: Request) -> Reply:
        _require_method(request)
        document: Document = await self._pool.run(self._control.ready)
        return answer_read(request, document, 200 if document.get("ready", True) else 503)

    async def _answer_issuers(self, request: Request) -> Reply:
        """Tell whom this server believes about people (RFC 9728), so that a client finds out where to log in."""
        _require_method(request)
        issuers = self._control.issuers()
        if not issuers:
            raise Fault(Kind.NOT_FOUND, "this server believes no issuer", hint="use a lease or a token: `nas run start`, `nas token issue`")
        document: Document = {
            "resource": f"{request.scheme}://{request.headers['host']}{request.raw_path.removeprefix(METADATA).decode()}",
            "resource_name": "Agent NAS",
            "authorization_servers": [issuer["issuer"] for issuer in issuers],
            "bearer_methods_supported": ["header"],
            "issuers": list(issuers),
        }
        return answer_read(request, document)

    async def _answer_api(self, request: Request) -> Reply:
        _require_method(request)
        return answer_read(request, self._api)


def _require_method(request: Request, methods: frozenset[str] = _READING) -> None:
    if request.method not in methods:
        allowed = {"allow": ", ".join(sorted(methods))}
        raise Refusal(405, Kind.UNSUPPORTED, f"{request.method} means nothing here", hint="use GET", headers=allowed)
