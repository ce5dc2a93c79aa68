"""HTTP as it is on the wire: one connection, kept; everything that was answered is kept as it came."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)

    def told(self) -> bytes:
        """Return all of it as it was said: status, headers in their order, body."""
        lines = [str(self.status), *(f"{name}: {value}" for name, value in self.headers.items())]
        return "\n".join(lines).encode("latin-1") + b"\n\n" + self.body


class Wire:
    """A connection to one server."""

    def __init__(self, url: str) -> None:
        """Talk to the server of `url`, from the first request on."""
        self.host = urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self.host, timeout=SECONDS)
        self.told: list[bytes] = []

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None) -> Reply:
        """Send one request and return its answer."""
        self._connection.request(method, target, body, dict(headers))
        answer = self._connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        reply = Reply(answer.status, fields, answer.read())
        self.told.append(reply.told())
        return reply

    def connect(self) -> socket.socket:
        """Connect now, anew, and return the connection that the next requests go over."""
        self._connection.close()
        self._connection.connect()
        connected: socket.socket = self._connection.sock
        return connected

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
