"""MCP over standard input and output, for clients that start a program: each message goes to the door, its answers come back as lines.

1. It decides nothing and holds no state of the conversation but the negotiated version, so it outlives a door that restarts.
2. The secret is a header of the client it is given: it is in no message, no argument and no line.
3. Whatever fails is an answer to the request it failed for: a client that waits is never left waiting.
4. Requests run side by side; a cancelled one is let go, which is all that cancelling means to a door without sessions.
5. The end of input lets what is under way finish, for a short while.
6. The SDK is not imported: a client starts this each time it starts, and loading the SDK takes ten times as long as all the rest.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import httpx2

from interfaces.port import Document

MOST_AT_ONCE = 32
GRACE_SECONDS = 10.0

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603
_CONNECTION_CLOSED = -32000
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

_ACCEPT = "application/json, text/event-stream"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_EVENT_BYTES = 16 << 20

Write = Callable[[str], Awaitable[None]]
"""Gives the client one line."""


class Bridge:
    """One conversation of a client with the door at a url. Belongs to one event loop."""

    def __init__(self, client: httpx2.AsyncClient, url: str, write: Write) -> None:
        """Pass messages on to `url` by `client`, which authenticates, and answers to `write`."""
        self._client = client
        self._url = url
        self._write = write
        self._version = ""
        self._under_way: dict[str, anyio.CancelScope] = {}
        self._room = anyio.CapacityLimiter(MOST_AT_ONCE)

    async def run(self, lines: AsyncIterator[str]) -> None:
        """Serve the client until its lines end."""
        async with anyio.create_task_group() as tasks:
            async for line in lines:
                message = await self._parse(line)
                if message is None:
                    continue
                if message.get("method") == "notifications/cancelled":
                    self._cancel(message)
                elif message.get("method") == "initialize" or "id" not in message:
                    await self._pass_on(message)  # what comes next builds on it
                else:
                    tasks.start_soon(self._pass_on, message)
            tasks.cancel_scope.deadline = anyio.current_time() + GRACE_SECONDS

    async def _parse(self, line: str) -> Document | None:
        if not line.strip():
            return None
        try:
            message = json.loads(line)
        except ValueError as error:
            await self._fail(None, _PARSE_ERROR, f"the line is not JSON: {error}")
            return None
        if not isinstance(message, dict):
            await self._fail(None, _INVALID_REQUEST, "a line is one JSON-RPC message")
            return None
        return message

    async def _pass_on(self, message: Document) -> None:
        key = json.dumps(message.get("id"))
        async with self._room:
            with anyio.CancelScope() as scope:
                self._under_way[key] = scope
                try:
                    answered = await self._post(message)
                except httpx2.HTTPError as error:
                    answered = await self._fail_request(
                        message, _CONNECTION_CLOSED, f"{self._url} does not answer: {error or type(error).__name__}"
                    )
                if not answered:
                    await self._fail_request(message, _CONNECTION_CLOSED, "the answer broke off; ask again")
            if self._under_way.get(key) is scope:
                del self._under_way[key]

    async def _post(self, message: Document) -> bool:
        """Send a message and give the client what comes back; returns whether its request is answered."""
        async with self._client.stream("POST", self._url, json=message, headers=headers_of(message, self._version)) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip()
            if kind == "text/event-stream":
                return await self._give_events(message, response)
            body = await response.aread()
            if "id" not in message:
                return True
            answer = _read_answer(body) if kind == "application/json" else None
            if answer is None:
                return await self._fail_request(
                    message, _INTERNAL_ERROR, f"the server answered with status {response.status_code} and no message"
                )
            return await self._give(message, answer)

    async def _give_events(self, message: Document, response: httpx2.Response) -> bool:
        async for event in httpx2.EventSource(response, max_event_size=_EVENT_BYTES):
            answer = _read_answer(event.data.encode()) if event.data else None
            if answer is not None and await self._give(message, answer):
                return True
        return "id" not in message

    async def _give(self, message: Document, answer: Document) -> bool:
        """Give the client one message and return whether it answers the request; an error of the door itself gets the request's id."""
        is_answer = "result" in answer or "error" in answer
        if is_answer:
            answer["id"] = message.get("id")
        if message.get("method") == "initialize" and isinstance(answer.get("result"), dict):
            self._version = str(answer["result"].get("protocolVersion", ""))
        await self._write(json.dumps(answer, separators=(",", ":")) + "\n")
        return is_answer

    async def _fail_request(self, message: Document, code: int, text: str) -> bool:
        if "id" in message:
            await self._fail(message["id"], code, text)
        return True

    async def _fail(self, request_id: Any, code: int, text: str) -> None:
        await self._write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}) + "\n")

    def _cancel(self, message: Document) -> None:
        parameters = message.get("params")
        if isinstance(parameters, dict) and (scope := self._under_way.get(json.dumps(parameters.get("requestId")))):
            scope.cancel()


def headers_of(message: Document, version: str) -> dict[str, str]:
    """Return the headers a message travels with: what newer revisions say of themselves in it, else the version that was negotiated."""
    parameters = message.get("params")
    parameters = parameters if isinstance(parameters, dict) else {}
    meta = parameters.get("_meta")
    own = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    headers = {"accept": _ACCEPT}
    if not isinstance(own, str):
        return headers | ({"mcp-protocol-version": version} if version and message.get("method") != "initialize" else {})
    headers |= {"mcp-protocol-version": encode_value(own), "mcp-method": encode_value(str(message.get("method")))}
    name = parameters.get(_NAMED.get(str(message.get("method")), ""))
    return headers | ({"mcp-name": encode_value(name)} if isinstance(name, str) else {})


def encode_value(text: str) -> str:
    """Return a text as the value of a header: itself where that is plain, else in the form the protocol has for the rest."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def _read_answer(content: bytes) -> Document | None:
    try:
        answer = json.loads(content)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
