"""A door over a room, on real sockets."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interfaces.http import Door, HttpServer, Limits
from tests.interfaces.http.room import SECRET, Room

LIMITS = Limits(header_seconds=1.0, idle_seconds=1.0, document_bytes=1 << 16, file_bytes=8 << 20, heartbeat_seconds=0.1)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.content)


@dataclass
class Site:
    """A running door and ways to speak to it."""

    room: Room
    server: HttpServer
    socket_path: Path
    spool: Path
    secret: str = SECRET

    def ask(self, method: str, target: str, body: bytes | dict[str, Any] | None = None, **headers: str) -> Answer:
        """Send one request; header names are given with underscores."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        sent = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, target, body, sent)
            response = connection.getresponse()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def head(self, method: str, target: str, *headers: str) -> bytes:
        """Return the head of a request as bytes, for `raw`."""
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.secret}", *headers, "", ""]
        return "\r\n".join(lines).encode()

    def raw(self, data: bytes, *, unix: bool = False) -> bytes:
        """Send bytes and return everything until the server ends the connection."""
        with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as connection:
            connection.settimeout(20)
            connection.connect(str(self.socket_path) if unix else ("127.0.0.1", self.server.port))
            connection.sendall(data)
            received = b""
            while piece := connection.recv(65536):
                received += piece
            return received


def start_site(folder: Path, limits: Limits = LIMITS) -> Site:
    (folder / "tree").mkdir()
    (folder / "spool").mkdir()
    room = Room(folder / "tree")
    door = Door(room, version="0", limits=limits, spool_folder=folder / "spool")
    path = folder / "s"
    server = HttpServer(door, host="127.0.0.1", port=0, socket_path=path, limits=limits)
    server.start()
    assert server.wait_started(20)
    return Site(room, server, path, folder / "spool")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = start_site(tmp_path_factory.mktemp("d"))
    yield site
    site.room.draining.set()
    assert site.server.drain(5)


@pytest.fixture
def site(running: Site) -> Site:
    """The running door with an empty tree and no memory of calls."""
    for entry in sorted(running.room.folder.rglob("*"), reverse=True):
        entry.rmdir() if entry.is_dir() and not entry.is_symlink() else os.unlink(entry)
    running.room.calls.clear()
    running.room.workspaces.clear()
    running.room.ready_now = True
    running.secret = SECRET
    return running
