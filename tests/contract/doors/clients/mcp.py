"""MCP, by the calls of tools that a model's client makes."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit

from interfaces.faults import Kind
from tests.contract.doors.clients.composed import MORE_BY_APPENDING, append_by_reading
from tests.contract.doors.clients.door import Aspect, Difference, Door, one_kind_each
from tests.contract.doors.clients.wire import Wire
from tests.contract.doors.leases import Standing
from tests.contract.doors.model import Operation, Refused, Seen
from tests.contract.doors.site import Held, Site

VERSION = "2025-06-18"


class Tools(Wire):
    """A client of the tools, over streamable HTTP without a session."""

    def __init__(self, url: str, authorization: str) -> None:
        super().__init__(url)
        self._path = urlsplit(url).path
        self._headers = {
            "Authorization": authorization,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
        }

    def read(self, path: str) -> bytes:
        return base64.b64decode(self.call("read", path=path, encoding="base64")["text"])

    def list(self, path: str) -> tuple[str, ...]:
        return tuple(item["path"].rpartition("/")[2] for item in self.call("list", path=path)["items"])

    def stat(self, path: str) -> Seen:
        found = self.call("list", path=path)["items"][0]
        return Seen(found["type"] == "directory", found["size"])

    def write(self, path: str, content: bytes) -> None:
        self.call("write", path=path, content=content.decode())

    def create(self, path: str, content: bytes) -> None:
        self.call("write", path=path, content=content.decode(), create_only=True)

    def append(self, path: str, content: bytes) -> None:
        found = self.call("read", path=path)
        self.call("write", path=path, content=found["text"] + content.decode(), if_tag=found["tag"])

    def copy(self, path: str, target: str) -> None:
        self.call("copy", path=path, to=target)

    def move(self, path: str, target: str) -> None:
        self.call("move", path=path, to=target)

    def delete(self, path: str) -> None:
        self.call("delete", path=path)

    def search(self, path: str, text: str) -> tuple[str, ...]:
        found = self.call("search", path=path, text=text)
        for failure in found["failures"]:
            raise Refused(f"in failures: {failure.get('code')}")
        return tuple(item["path"].rpartition("/")[2] for item in found["items"])

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its document. Raises `Refused`."""
        question = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        reply = self.send("POST", self._path, self._headers, json.dumps(question).encode())
        answer = _answer(reply.body)
        if reply.status >= 400:
            raise Refused(f"{reply.status} {answer['error']['data']['code']}")
        result = answer["result"]
        if result.get("isError"):
            raise Refused(f"isError {result['_meta']['agent-nas/fault']['code']}")
        return result["structuredContent"]


def _answer(body: bytes) -> Any:
    """Return the one message of a body, which is JSON or a stream of events."""
    data = next((line for line in body.splitlines() if line.startswith(b"data: {")), b"data: " + body)
    return json.loads(data.removeprefix(b"data: "))


WORDS = one_kind_each(
    {
        # What a tool tells the model.
        **{f"isError {kind.value}": kind for kind in Kind},
        "in failures: denied": Kind.DENIED,
        # Before a request reaches a tool.
        "401 expired": Kind.EXPIRED,
        "401 revoked": Kind.REVOKED,
        "401 unauthenticated": Kind.UNAUTHENTICATED,
        "403 denied": Kind.DENIED,
        "429 throttled": Kind.THROTTLED,
    }
)


def _connect(site: Site, held: Held) -> Tools:
    given = site.credentials(held, "mcp")
    return Tools(given["url"], given["settings"]["headers"]["Authorization"])


MCP = Door(
    "MCP",
    _connect,
    WORDS,
    by={Operation.APPEND: "`read` and `write` with `if_tag`", Operation.STAT: "`list`"},
    differs=(
        Difference(
            Aspect.DECISION,
            {Standing.HIDDEN},
            {Operation.WRITE, Operation.CREATE},
            "the tool makes the directories on its way, and is refused, and recorded, at the first that it may not make, there or not",
        ),
        *append_by_reading(),
    ),
    more=MORE_BY_APPENDING,
)
