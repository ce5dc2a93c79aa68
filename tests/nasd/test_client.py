"""The client over its socket: keys, repeats, and what it says when nobody answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from nasd.client import Client, NoDaemon, place, read_fault

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'


@contextmanager
def listening(path: Path, answers: list[bytes]) -> Iterator[list[bytes]]:
    """Answer one connection after the other; an empty answer breaks the connection. Yields the requests."""
    requests: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_answer, args=(listener, answers, requests))
        thread.start()
        yield requests
        thread.join()


def _answer(listener: socket.socket, answers: list[bytes], requests: list[bytes]) -> None:
    for answer in answers:
        connection, _ = listener.accept()
        with connection:
            received = connection.recv(65536)
            while received.startswith(b"POST") and not received.endswith(b"}"):
                received += connection.recv(65536)
            requests.append(received)
            connection.sendall(answer)


def key_of(request: bytes) -> bytes:
    return next(line for line in request.split(b"\r\n") if line.lower().startswith(b"idempotency-key"))


def client(path: Path) -> Client:
    return Client(path, path.parent, "anl1.secret", timeout=10)


def test_an_effect_is_repeated_with_the_same_key_when_the_connection_breaks(tmp_path: Path) -> None:
    with listening(tmp_path / "s", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{", ANSWER]) as requests:
        assert client(tmp_path / "s").post("/v1/runs", {"role": "x", "left": None}) == {"ok": True}
    assert len({key_of(request) for request in requests}) == 1
    assert all(request.endswith(b'{"role": "x"}') for request in requests)
    assert all(b"Authorization: Bearer anl1.secret\r\n" in request for request in requests)


def test_a_daemon_that_keeps_breaking_is_given_up_on(tmp_path: Path) -> None:
    with listening(tmp_path / "s", [b""] * 3), pytest.raises(NoDaemon, match="stopped answering"):
        client(tmp_path / "s").get("/v1/status")


def test_nobody_there_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoDaemon, match=f"no daemon is running for {tmp_path}") as raised:
        client(tmp_path / "s").get("/v1/status")
    assert raised.value.hint == "start it with `nas serve --background`"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "s"))
    with pytest.raises(NoDaemon, match="no daemon"):
        client(tmp_path / "s").get("/v1/status")


def test_content_that_breaks_off_is_not_taken_for_all_of_it(tmp_path: Path) -> None:
    with (
        listening(tmp_path / "s", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"]),
        pytest.raises(Fault, match="broke off"),
    ):
        list(client(tmp_path / "s").read("/v1/branches/main/files/a"))


def test_events_are_documents_until_a_fault_ends_them(tmp_path: Path) -> None:
    fault = b'event: fault\ndata: {"code": "revoked", "message": "taken back"}\n\n'
    stream = b': connected\n\nid: 4\nevent: a\ndata: {"sequence": 4}\n\n: heartbeat\n\n' + fault
    heard = []
    with (
        listening(tmp_path / "s", [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + stream]),
        pytest.raises(Fault, match="taken back") as raised,
    ):
        heard.extend(client(tmp_path / "s").events(3))
    assert raised.value.kind is Kind.REVOKED


def test_every_kind_survives_the_wire() -> None:
    for kind in Kind:
        fault = read_fault(400, json.dumps({"code": kind.value, "message": "m", "hint": "h", "policy": "p", "gate": "g"}).encode())
        assert (fault.kind, fault.message, fault.hint, fault.policy, fault.gate) == (kind, "m", "h", "p", "g")


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b"{}", b'{"code": "unheard-of", "message": "m"}', b"\xff"])
def test_an_answer_that_is_no_problem_is_told_with_its_status(content: bytes) -> None:
    fault = read_fault(502, content)
    assert (fault.kind, "502" in fault.message) == (Kind.INTERNAL, True)


def test_a_name_is_one_segment_whatever_is_in_it() -> None:
    assert place("/v1/branches/{branch}/commits", branch="a/b?c#d%é") == "/v1/branches/a%2Fb%3Fc%23d%25%C3%A9/commits"


def test_a_client_does_not_show_its_secret(tmp_path: Path) -> None:
    assert "secret" not in repr(client(tmp_path / "s"))
