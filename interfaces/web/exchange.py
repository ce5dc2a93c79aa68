"""One request from its first byte to its line in the access log, the same for every door of the family.

1. A request has an id: its client's when that is plain, else one of ours. It is in the reply, in the log and in a problem document.
2. A fault is rendered by the door, in the words of its protocol. Anything else that is raised is a defect: it is logged with its
   traceback and told as nothing but ``internal``.
3. The access log has door, method, path, status, bytes, milliseconds and request id: no query, no header, no body, hence no secret.
4. A reply that breaks off in the middle ends its connection, so that no client takes a part for the whole.
5. Everything here runs on the event loop; calls of the port that may block go to the pool.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import Disconnected, Receive, Reply, Request, Scope, Send, send_reply
from interfaces.web.guard import choose_request_id
from interfaces.web.pool import Pool

ACCESS = logging.getLogger("nas.access")
LOG = logging.getLogger("nas.web")

CLIENT_LEFT = 499
"""The status in the log of a request whose client did not wait for an answer."""

RenderFault = Callable[[Fault, Request], Reply]
"""Says a fault in the words of a door."""

Answer = Callable[[Request], Awaitable[Reply]]
"""What a door does with a request. Raises `Fault`, `Disconnected`."""

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
        clock: Callable[[], float] = time.monotonic,
        fresh_id: Callable[[], str] = _fresh_id,
    ) -> None:
        """Serve the door `name`; `clock` gives seconds that never go back, `fresh_id` ids nobody had before."""
        self.pool = pool
        self._name = name
        self._render_fault = render_fault
        self._clock = clock
        self._fresh_id = fresh_id

    async def serve(self, scope: Scope, receive: Receive, send: Send, answer: Answer) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        request.request_id = choose_request_id(request.headers, self._fresh_id)
        began = self._clock()
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

    async def _reply(self, request: Request, answer: Answer) -> Reply:
        try:
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
        path = request.raw_path.decode("ascii", "backslashreplace")
        ACCESS.info("%s %s %s %d %d %.1fms %s", self._name, request.method, path, status, sent, seconds * 1000, request.request_id)
