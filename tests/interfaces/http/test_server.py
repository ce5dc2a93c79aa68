"""The sockets and the life of the server."""

from __future__ import annotations

import socket
import stat
import threading
from pathlib import Path

import pytest

from interfaces.http import Door, HttpServer
from tests.interfaces.http.conftest import Site, start_site
from tests.interfaces.http.room import Room
from tests.interfaces.http.test_reads import FILES


def serve(folder: Path, port: int = 0) -> HttpServer:
    return HttpServer(Door(Room(folder), version="0"), host="127.0.0.1", port=port, socket_path=folder / "s")


def test_the_unix_socket_answers_and_belongs_to_its_owner(site: Site) -> None:
    assert stat.S_IMODE(site.socket_path.stat().st_mode) == 0o600
    answer = site.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", unix=True)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'{"status":"ok"}')


def test_a_socket_that_is_served_is_not_taken_and_a_stale_one_is(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "s"))
    first = serve(tmp_path)
    first.start()
    assert first.wait_started(20)
    with pytest.raises(OSError, match="another process serves"):
        serve(tmp_path)
    assert first.drain(5)
    assert not (tmp_path / "s").exists()


def test_a_port_in_use_is_an_error_of_the_caller(tmp_path: Path, site: Site) -> None:
    with pytest.raises(OSError, match="in use"):
        serve(tmp_path, site.server.port)
    assert not (tmp_path / "s").exists()


def test_a_drain_finishes_what_is_under_way_and_takes_no_more(tmp_path: Path) -> None:
    site = start_site(tmp_path)
    content = b"x" * (6 << 20)
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=20) as connection:
        head = site.head("PUT", f"{FILES}/a", f"Content-Length: {len(content)}", "Expect: 100-continue")
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        drained: list[bool] = []
        drain = threading.Thread(target=lambda: drained.append(site.server.drain(15)))
        drain.start()
        connection.sendall(content)
        assert connection.recv(1000).startswith(b"HTTP/1.1 201")
    drain.join()
    assert drained == [True]
    assert (site.room.folder / "a").read_bytes() == content
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", site.server.port))
    assert site.server.drain(1)


def test_a_server_that_never_started_drains(tmp_path: Path) -> None:
    assert serve(tmp_path).drain(1)
    assert not (tmp_path / "s").exists()
