"""The daemon's own socket, and the life of its server."""

from __future__ import annotations

import http.client
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from interfaces.http import Door, HttpServer
from interfaces.web.pool import Pool
from tests.interfaces.http.room import SECRET, Room

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextmanager
def prepared(folder: Path) -> Iterator[HttpServer]:
    with closing(Pool("http", 4)) as pool:
        yield HttpServer(Door(Room(), version="0", pool=pool), socket_path=folder / "s")


def connect(folder: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    try:
        connection.connect(str(folder / "s"))
    except OSError:
        connection.close()
        raise
    return connection


def test_the_socket_answers_and_belongs_to_its_owner(tmp_path: Path) -> None:
    with prepared(tmp_path) as server:
        server.start()
        assert server.wait_started(20)
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
        with connect(tmp_path) as connection:
            connection.sendall(HEALTH)
            received = b"".join(iter(lambda: connection.recv(65536), b""))
        assert received.startswith(b"HTTP/1.1 200")
        assert received.endswith(b'{"status":"ok"}')
        assert server.drain(5)


def test_a_socket_that_is_served_is_not_taken_and_a_stale_one_is(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "s"))
    with prepared(tmp_path) as first:
        first.start()
        assert first.wait_started(20)
        with pytest.raises(OSError, match="another process serves"), prepared(tmp_path):
            pass
        assert first.drain(5)
    assert not (tmp_path / "s").exists()


def test_a_drain_finishes_what_is_under_way_and_takes_no_more(tmp_path: Path) -> None:
    with prepared(tmp_path) as server:
        server.start()
        assert server.wait_started(20)
        body = b'{"name":"one"}'
        head = f"POST /v1/echoes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\nContent-Type: application/json\r\n"
        with connect(tmp_path) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 100")
            drained: list[bool] = []
            drain = threading.Thread(target=lambda: drained.append(server.drain(15)))
            drain.start()
            connection.sendall(body)
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.status == 201
        drain.join()
        assert drained == [True]
        with pytest.raises(FileNotFoundError):
            connect(tmp_path)
        assert server.drain(1)


def test_a_server_that_never_started_drains(tmp_path: Path) -> None:
    with prepared(tmp_path) as server:
        assert server.drain(1)
    assert not (tmp_path / "s").exists()
