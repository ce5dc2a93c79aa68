"""Every operation of the API, from the table `Control.operations`.

1. The door knows no operation by name: it finds the route, gathers the arguments, calls, and renders what comes back.
2. `Idempotency-Key` and `If-Match` are handed to the operation as arguments; one that cannot honour ``If-Match`` refuses it, because
   a guard that is silently ignored is worse than none.
"""

from __future__ import annotations

from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.http.bodies import read_document
from interfaces.http.responses import answer_document, answer_read
from interfaces.http.routes import BODY_METHODS, Route, Table, join_arguments, read_query, read_route
from interfaces.port import Caller, Control, Document
from interfaces.web.asgi import Reply, Request
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool

MAX_KEY = 255


class Operations:
    """The endpoint of all operations."""

    def __init__(self, control: Control, limits: Limits, pool: Pool) -> None:
        """Serve the operations `control` has now; the table does not change while it serves."""
        self._control = control
        self._limits = limits
        self._pool = pool
        self._table = Table(read_route(name, document) for name, document in control.operations().items())

    async def answer(self, request: Request, caller: Caller) -> Reply:
        """Return the answer to a request. Raises `Fault`, `Disconnected`."""
        route, in_path = self._table.match(request.method, request.raw_path)
        body = await read_document(request, self._limits) if route.method in BODY_METHODS else {}
        arguments = join_arguments(in_path, read_query(route, request.query), body, read_headers(route, request))
        document: Document = await self._pool.run(self._control.call, caller, route.operation, arguments)
        if route.effect:
            return answer_document(document, route.status)
        return answer_read(request, document, route.status)


def read_headers(route: Route, request: Request) -> dict[str, Any]:
    """Return the arguments that travel as headers. Raises `Kind.INVALID`."""
    arguments: dict[str, Any] = {}
    key = request.headers.get("idempotency-key")
    if key is not None and route.effect:
        if not 1 <= len(key) <= MAX_KEY or not key.isascii() or not key.isprintable():
            raise Fault(Kind.INVALID, f"an Idempotency-Key has 1 to {MAX_KEY} printable ASCII characters", hint="send a random UUID")
        arguments["idempotency_key"] = key
    if route.effect and "if-match" in request.headers:
        if "if_match" not in route.properties:
            raise Fault(Kind.INVALID, f"{route.operation} does not take If-Match", hint="leave the header out")
        arguments["if_match"] = request.headers["if-match"]
    return arguments
