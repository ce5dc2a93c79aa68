"""A house, and tools called in it: in process for what they do, over a socket for how they are reached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from interfaces.mcp import McpDoor
from interfaces.mcp.catalogue import TOOLS
from interfaces.mcp.room import Room
from interfaces.web.family import Family, Members
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from tests.house_of_doors import HouseOfDoors, Started
from tests.serving import serving

T = TypeVar("T")


@dataclass(frozen=True)
class Desk:
    """Calls tools for the holder of one secret."""

    house: HouseOfDoors
    secret: str

    @property
    def room(self) -> Room:
        return Room(self.house.control, self.house.control.authenticate(self.secret), lambda: 0.0)

    def result(self, tool: str, /, **arguments: Any) -> types.CallToolResult:
        """Return a result, held to the tool's own output schema."""
        result = TOOLS[tool].answer(self.room, arguments)
        if not result.is_error:
            Draft202012Validator(TOOLS[tool].gives).validate(result.structured_content)
        return result

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Return the document of a call that succeeds."""
        result = self.result(tool, **arguments)
        assert not result.is_error, text_of(result)
        document: dict[str, Any] = result.structured_content
        return document

    def told(self, tool: str, /, **arguments: Any) -> str:
        """Return the text of a call that succeeds."""
        result = self.result(tool, **arguments)
        assert not result.is_error, text_of(result)
        return text_of(result)

    def refused(self, tool: str, /, **arguments: Any) -> tuple[str, str]:
        """Return the kind and the text of a call that fails."""
        result = self.result(tool, **arguments)
        assert result.is_error, text_of(result)
        assert result.meta is not None
        return result.meta["agent-nas/fault"]["code"], text_of(result)


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


class Nothing:
    """The other doors."""

    lifespan = staticmethod(nullcontext)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("this request was for MCP")

    def drain(self) -> None:
        return


@contextmanager
def served(house: HouseOfDoors, limits: Limits | None = None, **door: Any) -> Iterator[str]:
    """Serve the door of a house and give its url."""
    pool = Pool("mcp-test", 8)
    try:
        member = McpDoor(house.control, pool=pool, limits=limits, version="1.2.3", **door)
        with serving(Family(Members(http=Nothing(), mcp=member)), limits=limits) as url:
            yield f"{url}/mcp"
    finally:
        pool.close()


def with_client(url: str, secret: str, act: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    """Return what `act` makes of a connected client of the SDK."""

    async def run() -> T:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=20) as http,
            Client(streamable_http_client(url, http_client=http), **options) as client,
        ):
            return await act(client)

    return asyncio.run(run())


def post(url: str, body: bytes, secret: str = "", **headers: str) -> httpx2.Response:
    """Send one request by hand."""
    known = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    authority = {"authorization": f"Bearer {secret}"} if secret else {}
    return httpx2.post(url, content=body, headers=known | authority | headers, timeout=20)


def rpc(method: str, **parameters: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).encode()


def fill(desk: Desk, started: Started, files: dict[str, bytes | None]) -> None:
    """Change files on a run's branch below the rights of anybody."""
    desk.house.house.write(desk.house.house.runs.find(started.run), files)
