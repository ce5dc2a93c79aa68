"""The MCP door of a real appliance with the suite's fixtures beside the real tools, as a program.

It prints its url and serves until standard input closes. The suite authenticates nobody and wants sessions, which an appliance has no use
for: requests get the secret of a run on their way in, and the SDK's transport with sessions takes the place of the one without.
Everything else is the product's; with ``--as-served`` the transport is too.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from interfaces.mcp import McpDoor
from interfaces.mcp.catalogue import TOOLS
from interfaces.mcp.door import make_transport
from interfaces.mcp.prompts import PROMPTS
from interfaces.web.asgi import Receive, Scope, Send
from interfaces.web.family import Family, Members
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from tests.house_of_doors import open_house
from tests.interfaces.mcp.fixtures import Events, make_fixtures
from tests.interfaces.mcp.rooms import Nothing
from tests.serving import serving


class WithSecret:
    """The door for clients that bring no secret."""

    def __init__(self, door: McpDoor, secret: str) -> None:
        self._door = door
        self._secret = secret
        self.lifespan = door.lifespan
        self.drain = door.drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [*scope["headers"], (b"authorization", f"Bearer {self._secret}".encode())]
        await self._door({**scope, "headers": headers}, receive, send)


def join_servers(ours: Server[Any], fixtures: Server[Any]) -> Server[Any]:
    """Return the server of the fixtures, which answers with ours whatever is no fixture."""
    for method, kind, lists in (
        ("tools/list", types.PaginatedRequestParams, "tools"),
        ("resources/list", types.PaginatedRequestParams, "resources"),
        ("resources/templates/list", types.PaginatedRequestParams, "resource_templates"),
        ("prompts/list", types.PaginatedRequestParams, "prompts"),
    ):
        fixtures.add_request_handler(method, kind, _both(ours, fixtures, method, lists))
    for method, kind, real in (
        ("tools/call", types.CallToolRequestParams, lambda params: params.name in TOOLS),
        ("resources/read", types.ReadResourceRequestParams, lambda params: params.uri.startswith("nas://")),
        ("prompts/get", types.GetPromptRequestParams, lambda params: params.name in PROMPTS),
    ):
        fixtures.add_request_handler(method, kind, _either(ours, fixtures, method, real))
    return fixtures


def _both(ours: Server[Any], fixtures: Server[Any], method: str, lists: str) -> Any:
    real, fixed = ours.get_request_handler(method), fixtures.get_request_handler(method)
    assert real is not None
    assert fixed is not None

    async def answer(context: ServerRequestContext, params: Any) -> Any:
        known = await real.handler(context, params)
        more = await fixed.handler(context, params)
        return known.model_copy(update={lists: [*getattr(known, lists), *getattr(more, lists)]})

    return answer


def _either(ours: Server[Any], fixtures: Server[Any], method: str, is_real: Any) -> Any:
    real, fixed = ours.get_request_handler(method), fixtures.get_request_handler(method)
    assert real is not None
    assert fixed is not None

    async def answer(context: ServerRequestContext, params: Any) -> Any:
        return await (real if is_real(params) else fixed).handler(context, params)

    return answer


def serve(stopped: threading.Event, *, sessions: bool) -> None:
    """Serve on a free port, whose url is printed, until told to stop; with the transport that has sessions, or the product's own."""
    with tempfile.TemporaryDirectory() as folder, open_house(Path(folder)) as house:
        pool = Pool("conformance", 8)
        door = McpDoor(house.control, pool=pool, version="conformance")
        server = join_servers(door.transport.app, make_fixtures()._lowlevel_server)
        limits = Limits()
        if sessions:
            door.transport = door.streams = StreamableHTTPSessionManager(
                server, event_store=Events(), retry_interval=100, max_request_body_size=limits.document_bytes
            )
        else:
            door.transport, door.streams = (make_transport(server, limits, streams=streams) for streams in (False, True))
        family = Family(Members(http=Nothing(), mcp=WithSecret(door, house.start_run().secret)))
        with serving(family) as url:
            print(f"{url}/mcp", flush=True)
            stopped.wait()
        pool.close()


if __name__ == "__main__":
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    serve(ended, sessions="--as-served" not in sys.argv)
