"""The link between gateways and the daemon: questions, answers, faults, and ends that go away."""

from __future__ import annotations

import socket
import stat
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.link import LONGEST, LinkClient, LinkServer


def answer(question: Document) -> Document:
    if question.get("operation") == "refuse":
        raise Fault(Kind.GATED, "ask a person", hint="wait", policy="line 3", gate="g1")
    if question.get("operation") == "break":
        raise ZeroDivisionError("a defect with a secret detail")
    return {"echo": question}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "link.sock"


@pytest.fixture
def client(path: Path) -> Iterator[LinkClient]:
    client = LinkClient(path)
    yield client
    client.close()


@pytest.fixture
def server(path: Path) -> Iterator[LinkServer]:
    server = LinkServer(path, answer)
    yield server
    server.close()


def test_a_question_comes_back_answered_whatever_bytes_it_names(client: LinkClient, server: LinkServer, path: Path) -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    question = {"operation": "echo", "arguments": {"path": name, "text": "é\n\0"}}
    assert client.ask(question) == {"echo": question}


def test_a_fault_arrives_with_all_it_says(client: LinkClient, server: LinkServer, path: Path) -> None:
    with pytest.raises(Fault) as caught:
        client.ask({"operation": "refuse"})
    fault = caught.value
    assert (fault.kind, fault.message, fault.hint, fault.policy, fault.gate) == (Kind.GATED, "ask a person", "wait", "line 3", "g1")


def test_a_defect_tells_nothing_and_the_connection_goes_on(client: LinkClient, server: LinkServer, path: Path) -> None:
    with pytest.raises(Fault) as caught:
        client.ask({"operation": "break"})
    assert caught.value.kind is Kind.INTERNAL
    assert "secret" not in caught.value.message
    assert client.ask({"operation": "echo"}) == {"echo": {"operation": "echo"}}


def test_many_threads_ask_at_once_and_each_gets_its_own_answer(client: LinkClient, server: LinkServer, path: Path) -> None:
    wrong = []

    def ask(number: int) -> None:
        for turn in range(20):
            question = {"operation": "echo", "number": number, "turn": turn}
            if client.ask(question) != {"echo": question}:
                wrong.append(question)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_while_the_daemon_is_away_a_question_is_unavailable_and_afterwards_answered(client: LinkClient, path: Path) -> None:
    with pytest.raises(Fault) as caught:
        client.ask({"operation": "echo"})
    assert caught.value.kind is Kind.UNAVAILABLE
    server = LinkServer(path, answer)
    assert client.ask({"operation": "echo"}) == {"echo": {"operation": "echo"}}
    server.close()


def test_a_daemon_that_restarts_is_found_again(client: LinkClient, path: Path) -> None:
    for _ in range(2):
        server = LinkServer(path, answer)
        assert client.ask({"operation": "echo"}) == {"echo": {"operation": "echo"}}
        server.close()


def test_the_socket_belongs_to_its_owner_alone(client: LinkClient, server: LinkServer, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_message_above_the_limit_is_not_taken(client: LinkClient, server: LinkServer, path: Path) -> None:
    with pytest.raises(Fault) as caught:
        client.ask({"text": "x" * LONGEST})
    assert caught.value.kind is Kind.TOO_LARGE
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))
        raw.sendall(struct.pack(">I", LONGEST + 1))
        assert raw.recv(1) == b""


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0\x05ab", b"\0\0\0\x02[]", b"\0\0\0\x01{", b"\xff" * 64])
def test_noise_ends_its_own_connection_only(client: LinkClient, server: LinkServer, path: Path, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))
        raw.sendall(sent)
    assert client.ask({"operation": "echo"}) == {"echo": {"operation": "echo"}}
