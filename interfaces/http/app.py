"""The door: one ASGI application over `Control`.

1. Each request is named, checked for where it comes from, authenticated, answered and logged, in this order.
2. ``/healthz``, ``/readyz`` and ``/openapi.json`` are the only things a stranger is told.
3. The access log has method, path, status, bytes, milliseconds and request id: no query, no header, no body, hence no secret.
4. A fault becomes a problem document. Anything else that is raised is logged with its traceback and told as nothing but ``internal``.
5. Everything runs on the event loop of the server except calls of the port, which go to a bounded set of threads.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from interfaces.faults import Fault, Kind
from interfaces.http.events import Events
from interfaces.http.files import Files, is_files_path
from interfaces.http.openapi import describe_api
from interfaces.http.operations import Operations
from interfaces.http.responses import answer_fault, answer_read
from interfaces.port import Control, Document
from interfaces.web.guard import LOOPBACK_NAMES, check_source, choose_request_id
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal

ACCESS = logging.getLogger("nas.http.access")
LOG = logging.getLogger("nas.http")

_CLIENT_LEFT = 499
_SAFE = frozenset({"GET", "HEAD"})
_INTERNAL = Fault(Kind.INTERNAL, "something went wrong inside the appliance", hint="the daemon's log has the details")


@dataclass(slots=True)
class Exchange:
    """One request while it is answered; `status` 0 means that nothing was sent yet."""

    request_id: str
    status: int = 0
    sent: int = 0


class Door:
    """The ASGI application."""

    def __init__(
        self,
        control: Control,
        *,
        version: str,
        limits: Limits | None = None,
        names: frozenset[str] = LOOPBACK_NAMES,
        spool_folder: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        fresh_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        """Serve `control` under the host `names`; uploads rest in `spool_folder` while they arrive."""
        self._control = control
        self._names = names
        self._clock = clock
        self._fresh_id = fresh_id
        limits = limits or Limits()
        self._pool = Pool("http", limits.threads)
        self._events = Events(control, limits, clock)
        self._files = Files(control, limits, self._pool, spool_folder)
        self._operations = Operations(control, limits, self._pool)
        self._api = describe_api(control.operations(), version)

    def drain(self) -> None:
        """Let event streams end; requests under way are finished by the server."""
        self._events.drain()

    def close(self) -> None:
        """Release the threads."""
        self._events.close()
        self._pool.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        exchange = Exchange(choose_request_id(request.headers, self._fresh_id))
        scope["request_id"] = exchange.request_id
        began = self._clock()
        try:
            response = await self._respond(request, exchange)
            await response(scope, receive, self._watched(send, exchange))
        except ClientDisconnect:
            exchange.status = exchange.status or _CLIENT_LEFT
        except Fault as fault:
            # The answer has begun, so the only honest end is to break the connection: returning early does that.
            LOG.warning("request %s broke off: %s", exchange.request_id, fault.message)
        _log_access(request, exchange, self._clock() - began)

    async def _respond(self, request: Request, exchange: Exchange) -> Response:
        try:
            return await self._route(request)
        except Fault as fault:
            return answer_fault(fault, exchange.request_id)
        except ClientDisconnect:
            raise
        except Exception:
            # Rule 4: a stranger learns nothing from a defect, the log everything.
            LOG.exception("request %s failed", exchange.request_id)
            return answer_fault(_INTERNAL, exchange.request_id)

    async def _route(self, request: Request) -> Response:
        check_source(request.headers, self._names)
        path: bytes = request.scope["raw_path"]
        if path in _PUBLIC:
            return await _PUBLIC[path](self, request)
        secret = _read_bearer(request.headers)
        if path == b"/v1/events":
            _require_reading(request, frozenset({"GET"}))
            return await self._events.answer(request, secret)
        if is_files_path(path):
            return await self._files.answer(request, secret)
        return await self._operations.answer(request, secret)

    async def _answer_health(self, request: Request) -> Response:
        _require_reading(request)
        return answer_read(request, {"status": "ok"})

    async def _answer_ready(self, request: Request) -> Response:
        _require_reading(request)
        document: Document = await self._pool.run(self._control.ready)
        return answer_read(request, document, 200 if document.get("ready", True) else 503)

    async def _answer_api(self, request: Request) -> Response:
        _require_reading(request)
        return answer_read(request, self._api)

    def _watched(self, send: Send, exchange: Exchange) -> Send:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", exchange.request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            else:
                exchange.sent += len(message.get("body", b""))
            await send(message)

        return watched


_PUBLIC = {
    b"/healthz": Door._answer_health,
    b"/readyz": Door._answer_ready,
    b"/openapi.json": Door._answer_api,
}


def _read_bearer(headers: Mapping[str, str]) -> str:
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        hint = "send Authorization: Bearer with what `nas run start` or `nas token issue` printed"
        raise Fault(Kind.UNAUTHENTICATED, "the request carries no secret", hint=hint)
    return secret.strip()


def _require_reading(request: Request, methods: frozenset[str] = _SAFE) -> None:
    if request.method not in methods:
        allowed = {"allow": ", ".join(sorted(methods))}
        raise Refusal(405, Kind.UNSUPPORTED, f"{request.method} means nothing here", hint="use GET", headers=allowed)


def _log_access(request: Request, exchange: Exchange, seconds: float) -> None:
    path = request.scope["raw_path"].decode("ascii", "replace")
    ACCESS.info("%s %s %d %d %.1fms %s", request.method, path, exchange.status, exchange.sent, seconds * 1000, exchange.request_id)
