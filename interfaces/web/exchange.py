"""One request from its first byte to its line in the access log, the same for every door of the family.

1. A request has an id: its client's when that is plain, else one of ours. It is in the reply, in the log and in a problem document.
   Where it comes from is checked before anything else of it.
2. A fault is rendered by the door, in the words of its protocol. Anything else that is raised is a defect: it is logged with its
   traceback and told as nothing but ``internal``.
3. The access log has door, method, path, status, bytes, milliseconds and request id: no query, no header, no body, hence no secret. One
   that somebody pasted where a name belongs (``anl1.``, ``nat1.`` and their like) is left out of the path.
4. A reply that breaks off in the middle ends its connection, so that no client takes a part for the whole.
5. Everything here runs on the event loop; calls of the port that may block go to the pool.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import App, Disconnected, Message, Receive, Reply, Request, Scope, Send, send_reply
from interfaces.web.guard import LOOPBACK_NAMES, check_source, choose_request_id
from interfaces.web.pool import Pool

ACCESS = logging.getLogger("nas.access")
LOG = logging.getLogger("nas.web")

CLIENT_LEFT = 499
"""The status in the log of a request whose client did not wait for an answer."""

RenderFault = Callable[[Fault, Request], Reply]
"""Says a fault in the words of a door."""

Answer = Callable[[Request], Awaitable[Reply]]
"""What a door does with a request. Raises `Fault`, `Disconnected`."""

Prepare = Callable[[Request], Awaitable[App]]
"""Looks at a request and returns the application that sends the answer itself. Raises `Fault`, `Disconnected`."""

Answered = TypeVar("Answered")

_CREDENTIAL = re.compile(r"\b(?:anl|anm|nat|nap)1(?:\.|%2[eE])[^/]*")
_ACCESS_LINE = "%s %s %s %d %d %.1fms %s"
_INTERNAL = Fault(Kind.INTERNAL, "something went wrong inside the appliance", hint="the log of the appliance has the details")


def _fresh_id() -> str:
    return secrets.token_hex(8)


class Exchange:
    """The requests of one door."""

    def __init__(
        self,
        name: str,
        pool: Pool,
        render_fault: RenderFault,
        *,
        names: frozenset[str] | None = LOOPBACK_NAMES,
        clock: Callable[[], float] = time.monotonic,
        fresh_id: Callable[[], str] = _fresh_id,
    ) -> None:
        """Serve the door `name` to who asks for one of the host `names` (None: for any); `clock` gives seconds that never go back."""
        self.pool = pool
        self._name = name
        self._render_fault = render_fault
        self._names = names
        self._clock = clock
        self._fresh_id = fresh_id

    async def serve(self, scope: Scope, receive: Receive, send: Send, answer: Answer) -> None:
        """Answer one request."""
        began = self._clock()
        request = self._read(scope, receive)
        status, sent = CLIENT_LEFT, 0
        try:
            reply = await self._reply(request, answer)
            status = reply.status
            sent = await send_reply(request, send, reply)
        except Disconnected:
            LOG.info("the client of request %s left", request.request_id)
        except Fault as fault:
            # The reply has begun, so the only honest end is to break the connection: returning early does that (rule 4).
            LOG.warning("request %s broke off: %s", request.request_id, fault.message)
        self._log_access(request, status, sent, self._clock() - began)

    async def hand_over(self, scope: Scope, receive: Receive, send: Send, prepare: Prepare) -> None:
        """Have the application that `prepare` returns answer one request."""
        began = self._clock()
        request = self._read(scope, receive)
        watched = Watched(send, request.request_id)

        async def answer(request: Request) -> Reply | None:
            await (await prepare(request))(scope, receive, watched)
            return None

        try:
            reply = await self._reply(request, answer)
            if reply is not None and watched.status == CLIENT_LEFT:
                watched.status = reply.status
                watched.sent = await send_reply(request, send, reply)
        except Disconnected:
            LOG.info("the client of request %s left", request.request_id)
        self._log_access(request, watched.status, watched.sent, self._clock() - began)

    def _read(self, scope: Scope, receive: Receive) -> Request:
        request = Request(scope, receive)
        request.request_id = choose_request_id(request.headers, self._fresh_id)
        return request

    async def _reply(self, request: Request, answer: Callable[[Request], Awaitable[Answered]]) -> Answered | Reply:
        try:
            if self._names is not None:
                check_source(request.method, request.headers, self._names)
            return await answer(request)
        except Fault as fault:
            return self._render_fault(fault, request)
        except Disconnected:
            raise
        except Exception:
            # Rule 2: a stranger learns nothing from a defect, the log everything.
            LOG.exception("request %s failed", request.request_id)
            return self._render_fault(_INTERNAL, request)

    def _log_access(self, request: Request, status: int, sent: int, seconds: float) -> None:
        if not ACCESS.isEnabledFor(logging.INFO):
            return
        path = _CREDENTIAL.sub("(credential)", request.raw_path.decode("ascii", "backslashreplace"))
        told = (self._name, request.method, path, status, sent, seconds * 1000, request.request_id)
        # A record made here costs a third of what `info` does, which looks up the line of code that called it.
        ACCESS.handle(logging.LogRecord(ACCESS.name, logging.INFO, __file__, 0, _ACCESS_LINE, told, None))


class Watched:
    """Where a foreign application sends its answer: it gets what every reply of the family has, and is counted."""

    def __init__(self, send: Send, request_id: str) -> None:
        """Pass on to `send`."""
        self._send = send
        self._request_id = request_id.encode()
        self.status = CLIENT_LEFT
        self.sent = 0

    async def __call__(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            fields = [*message.get("headers", ()), (b"x-request-id", self._request_id), (b"x-content-type-options", b"nosniff")]
            message = {**message, "headers": fields}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)
