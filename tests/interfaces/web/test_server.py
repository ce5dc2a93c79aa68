"""The server of a gateway process, on real sockets."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import App, Disconnected, Receive, Reply, Request, Scope, Send
from interfaces.web.exchange import Exchange
from interfaces.web.problems import reply_problem
from interfaces.web.serve import Tls, run
from tests.interfaces.web.plain import LIMITS, Place, Plain, plain, some_threads
from tests.serving import serving

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def hello(request: Request) -> Reply:
    return Reply(200, body=f"{request.scheme} {request.scope['client'][0]}".encode())


def test_a_client_that_does_not_read_holds_two_pieces_and_is_cut_off() -> None:
    made: list[int] = []
    released = threading.Event()

    async def endless(request: Request) -> Reply:
        async def pieces() -> AsyncGenerator[bytes, None]:
            while True:
                made.append(1)
                yield bytes(1 << 20)

        return Reply(200, pieces=pieces(), release=released.set)

    with some_threads() as pool, plain(endless, pool) as place, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", place.port))
        connection.sendall(GET)
        assert released.wait(20)
    # What the kernel takes for its own buffers is a few megabytes, whatever the size of the answer.
    assert len(made) <= 8


def test_a_client_that_leaves_ends_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nas")
    released = threading.Event()

    async def endless(request: Request) -> Reply:
        async def pieces() -> AsyncGenerator[bytes, None]:
            while True:
                yield bytes(1000)

        return Reply(200, pieces=pieces(), release=released.set)

    with some_threads() as pool, plain(endless, pool) as place:
        with place.connect() as connection:
            connection.sendall(GET)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert released.wait(20)
    assert "left" in caplog.text


def test_a_reply_that_breaks_off_ends_the_connection_short_of_its_length(caplog: pytest.LogCaptureFixture) -> None:
    async def breaking(request: Request) -> Reply:
        async def pieces() -> AsyncGenerator[bytes, None]:
            yield b"half"
            raise Fault(Kind.REVOKED, "the lease was revoked")

        return Reply(200, (("content-length", "8"),), pieces=pieces())

    with some_threads() as pool, plain(breaking, pool) as place:
        assert place.say(GET).endswith(b"\r\n\r\nhalf")
    assert "broke off: the lease was revoked" in caplog.text


def test_head_announces_what_get_sends_and_sends_nothing() -> None:
    with some_threads() as pool, plain(hello, pool) as place:
        got, told = place.say(GET), place.say(GET.replace(b"GET", b"HEAD"))
    head, _, content = got.partition(b"\r\n\r\n")
    assert content == b"http 127.0.0.1"
    assert b"content-length: 14" in head
    assert b"content-length: 14" in told
    assert told.endswith(b"\r\n\r\n")


def test_what_a_client_says_of_itself_counts_from_a_declared_proxy_only() -> None:
    forwarded = GET.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\r\n")
    with some_threads() as pool:
        for proxies, seen in ((frozenset[str](), b"http 127.0.0.1"), (frozenset({"192.0.2.1"}), b"http 127.0.0.1")):
            with plain(hello, pool, proxies=proxies) as place:
                assert place.say(forwarded).endswith(seen)
        with plain(hello, pool, proxies=frozenset({"127.0.0.1"})) as place:
            assert place.say(forwarded).endswith(b"https 192.0.2.7")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return Tls(certificate, key)


def test_tls_is_spoken_in_its_current_versions(tls: Tls) -> None:
    with some_threads() as pool, plain(hello, pool, tls=tls) as place:
        context = ssl.create_default_context(cafile=tls.certificate)
        with context.wrap_socket(place.connect(), server_hostname="localhost") as connection:
            connection.sendall(GET)
            assert b"".join(iter(lambda: connection.recv(65536), b"")).endswith(b"https 127.0.0.1")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with context.wrap_socket(place.connect(), server_hostname="localhost") as connection:
            assert connection.version() == "TLSv1.2"


def test_a_key_that_is_none_is_an_error_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("no key")
    tls = Tls(tmp_path / "no.pem", tmp_path / "no.pem")
    listening = socket.create_server(("127.0.0.1", 0))
    with some_threads() as pool, pytest.raises(OSError, match="PEM"):
        run(
            Plain(pool, hello),
            descriptor=listening.detach(),
            limits=LIMITS,
            ready=lambda: None,
            stopping=threading.Event(),
            drain_seconds=1,
            tls=tls,
        )


def test_a_drain_finishes_what_is_under_way() -> None:
    begun, finish = threading.Event(), threading.Event()

    async def slow(request: Request) -> Reply:
        begun.set()
        await pool.run(finish.wait, 20)
        return Reply(200, body=b"finished")

    with some_threads() as pool:
        with plain(slow, pool) as place:
            connection = place.connect()
            connection.sendall(GET)
            assert begun.wait(20)
            threading.Timer(0.3, finish.set).start()
        with connection:
            assert b"".join(iter(lambda: connection.recv(65536), b"")).endswith(b"finished")
        assert place.door.drained == 1


def test_servers_side_by_side_share_one_socket() -> None:
    with some_threads() as pool, socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        events = [(threading.Event(), threading.Event()) for _ in range(2)]
        doors = [Plain(pool, hello) for _ in events]
        threads = [
            threading.Thread(
                target=run,
                args=(door,),
                kwargs={
                    "descriptor": listening.dup().detach(),
                    "limits": LIMITS,
                    "ready": ready.set,
                    "stopping": stopping,
                    "drain_seconds": 2,
                },
            )
            for door, (ready, stopping) in zip(doors, events, strict=True)
        ]
        for thread in threads:
            thread.start()
        assert all(ready.wait(20) for ready, _ in events)
        for door, (_, stopping), thread in zip(doors, events, threads, strict=True):
            with socket.create_connection(address, timeout=20) as connection:
                connection.sendall(GET)
                assert connection.recv(100).startswith(b"HTTP/1.1 200")
            stopping.set()
            thread.join(20)
            assert door.drained == 1


def test_a_connection_that_rests_makes_room_for_another() -> None:
    with some_threads() as pool, serving(Plain(pool, hello), limits=replace(LIMITS, connections=3)) as url, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        resting = []
        for _ in range(2):
            connection = stack.enter_context(socket.create_connection(address, timeout=20))
            connection.sendall(GET.replace(b"Connection: close", b"X: y"))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            resting.append(connection)
        deadline = time.monotonic() + 20
        while not ask(address[1], b"/").startswith(b"HTTP/1.1 200"):
            assert time.monotonic() < deadline
        ended, _, _ = select.select(resting, [], [], 20)
        assert ended


def test_a_connection_too_many_is_told_so() -> None:
    with some_threads() as pool, serving(Plain(pool, hello), limits=replace(LIMITS, connections=3)) as url, contextlib.ExitStack() as stack:
        port = int(url.rpartition(":")[2])
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        assert ask(port, b"/").startswith(b"HTTP/1.1 503")
        stack.close()
        while not ask(port, b"/").startswith(b"HTTP/1.1 200"):
            time.sleep(0.01)


@pytest.fixture(scope="module")
def greeting() -> Iterator[Place]:
    with some_threads() as pool, plain(hello, pool) as place:
        yield place


PARTS = (
    *(b"GET ", b"PUT ", b"/", b"*", b"http://h", b" HTTP/1.1", b"\r\n", b"\n", b"Host: localhost", b"Content-Length: ", b"-1", b"0"),
    *(b"Transfer-Encoding: chunked", b"5;a=b", b"abcde", b"Expect: 100-continue", b"Connection: upgrade", b"Upgrade: websocket", b":"),
    *(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"?a=%zz", b"#f", b"\0"),
)
crooked_heads = st.lists(st.sampled_from(PARTS) | st.binary(max_size=12), max_size=14).map(b"".join)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=crooked_heads)
def test_any_bytes_are_answered_in_kind_or_not_at_all(greeting: Place, head: bytes) -> None:
    with greeting.connect() as connection, contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(head + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert not answer or answer.startswith((b"HTTP/1.1 1", b"HTTP/1.1 2", b"HTTP/1.1 4"))
    assert greeting.say(GET).startswith(b"HTTP/1.1 200")


def test_a_foreign_application_answers_through_the_exchange(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nas.access")

    async def foreign(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"other"})

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError("a defect")

    async def left(scope: Scope, receive: Receive, send: Send) -> None:
        raise Disconnected

    async def prepare(request: Request) -> App:
        if request.raw_path == b"/fault":
            raise Fault(Kind.NOT_FOUND, "nothing")
        return {b"/": foreign, b"/left": left}.get(request.raw_path, broken)

    class Hosting(Plain):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await exchange.hand_over(scope, receive, send, prepare)

    with some_threads() as pool:
        exchange = Exchange("host", pool, reply_problem)
        with serving(Hosting(pool, hello), limits=LIMITS) as url:
            port = int(url.rpartition(":")[2])
            answers = [ask(port, path) for path in (b"/", b"/fault", b"/broken", b"/left")]
    assert [answer.partition(b"\r\n")[0][9:12] for answer in answers] == [b"202", b"404", b"500", b"500"]
    assert b"x-request-id: " in answers[0]
    assert b"nosniff" in answers[0]
    lines = [record.getMessage() for record in caplog.records if record.name == "nas.access"]
    assert next(line.split()[:5] for line in lines) == ["host", "GET", "/", "202", "5"]


def test_a_credential_that_was_pasted_where_a_name_belongs_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nas.access")
    with some_threads() as pool, plain(hello, pool) as place:
        for path in (b"/v1/runs/anl1.WyJs.KAQ2", b"/v1/leases/anm1%2EWyJs.KAQ2/x", b"/nat1.a.secret", b"/nap1.7.secret", b"/file1.txt"):
            ask(place.port, path)
    paths = [record.getMessage().split()[2] for record in caplog.records if record.name == "nas.access"]
    assert paths == ["/v1/runs/(credential)", "/v1/leases/(credential)/x", "/(credential)", "/(credential)", "/file1.txt"]


def ask(port: int, path: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(GET.replace(b"GET /", b"GET " + path))
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_client_that_reads_nothing_at_all_is_not_waited_for() -> None:
    async def large(request: Request) -> Reply:
        return Reply(200, body=bytes(8 << 20))

    with some_threads() as pool, plain(large, pool) as place, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", place.port))
        connection.sendall(GET)
        time.sleep(LIMITS.idle_seconds * 1.5)
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                received += len(piece)
        assert received < 8 << 20
