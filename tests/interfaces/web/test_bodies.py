"""Bodies: whole ones, those that stream, and those that never come to an end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import Disconnected, Message, Reply, Request
from interfaces.web.bodies import Upload, read_body
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from interfaces.web.problems import Refusal
from tests.interfaces.web.plain import LIMITS, plain, some_threads


def request_of(messages: Iterable[Message], **headers: str) -> Request:
    coming = iter(messages)

    async def receive() -> Message:
        return next(coming, {"type": "http.disconnect"})

    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"method": "PUT", "raw_path": b"/", "query_string": b"", "headers": fields, "scheme": "http"}, receive)


def messages_of(pieces: list[bytes]) -> list[Message]:
    """Return what a server says of a body that comes in pieces."""
    return [{"type": "http.request", "body": piece, "more_body": index < len(pieces) - 1} for index, piece in enumerate(pieces)]


pieces_of_bodies = st.lists(st.binary(max_size=40), min_size=1, max_size=12)


@example([bytes(21), bytes(22)], 1, 1)
@given(pieces_of_bodies, st.integers(1, 64), st.integers(1, 64))
def test_an_upload_reads_as_what_was_sent_whatever_the_sizes(pieces: list[bytes], buffer: int, size: int) -> None:
    limits = Limits(upload_buffer=buffer)
    held: list[int] = []

    async def send() -> bytes:
        upload = Upload(request_of(messages_of(pieces)), limits)

        def consume() -> bytes:
            found = b""
            while data := upload.read(size):
                assert len(data) <= size
                held.append(upload._held)
                found += data
            assert upload.read(size) == b""
            return found

        with some_threads() as pool:
            return await upload.into(pool, consume)

    assert asyncio.run(send()) == b"".join(pieces)
    assert all(amount <= buffer + 40 for amount in held)


@given(pieces_of_bodies, st.integers(0, 100))
def test_a_whole_body_is_read_or_refused_by_its_size(pieces: list[bytes], limit: int) -> None:
    body = b"".join(pieces)
    try:
        assert asyncio.run(read_body(request_of(messages_of(pieces)), limit, Limits())) == body
    except Refusal as refusal:
        assert (refusal.status, len(body) > limit) == (413, True)


@pytest.mark.parametrize("announced", ["11", "9" * 400])
def test_what_announces_too_much_is_refused_before_a_byte(announced: str) -> None:
    with pytest.raises(Refusal) as caught:
        asyncio.run(read_body(request_of([], content_length=announced), 10, Limits()))
    assert caught.value.status == 413


def test_a_client_that_leaves_ends_a_whole_body_and_an_upload() -> None:
    half: list[Message] = [{"type": "http.request", "body": b"half", "more_body": True}]

    async def upload_half(buffer: int, pool: Pool) -> list[Exception]:
        upload = Upload(request_of(half), Limits(upload_buffer=buffer))
        seen: list[Exception] = []

        def consume() -> None:
            try:
                while upload.read(100):
                    continue
            except Fault as fault:
                seen.append(fault)
                raise

        with pytest.raises(Disconnected):
            await upload.into(pool, consume)
        return seen

    with pytest.raises(Disconnected):
        asyncio.run(read_body(request_of(half), 100, Limits()))
    with some_threads() as pool:
        assert asyncio.run(upload_half(100, pool)) == []
        [fault] = asyncio.run(upload_half(2, pool))
    assert isinstance(fault, Fault)
    assert fault.kind is Kind.UNAVAILABLE


def test_a_reader_that_gives_up_ends_the_reading() -> None:
    def refuse() -> None:
        raise Fault(Kind.BUDGET, "spent")

    async def give_up(pool: Pool) -> None:
        endless = ({"type": "http.request", "body": b"x" * 100, "more_body": True} for _ in iter(int, 1))
        upload = Upload(request_of(endless), Limits(upload_buffer=10))
        with pytest.raises(Fault, match="spent"):
            await upload.into(pool, refuse)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with some_threads() as pool:
        asyncio.run(give_up(pool))


def test_a_large_body_streams_over_the_wire() -> None:
    content = os.urandom(5 << 20)

    async def answer(request: Request) -> Reply:
        upload = Upload(request, LIMITS)

        def consume() -> str:
            digest = hashlib.sha256()
            while data := upload.read(1 << 20):
                digest.update(data)
            return digest.hexdigest()

        return Reply(200, body=(await upload.into(pool, consume)).encode())

    with some_threads() as pool, plain(answer, pool) as place:
        head = b"PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(content)
        assert place.say(head + content).endswith(hashlib.sha256(content).hexdigest().encode())


def test_a_client_that_asks_first_sends_nothing_that_is_refused() -> None:
    async def answer(request: Request) -> Reply:
        upload = Upload(request, LIMITS)

        def refuse() -> None:
            raise Fault(Kind.DENIED, "not here")

        def consume() -> int:
            return len(upload.read(100))

        return Reply(200, body=b"%d" % await upload.into(pool, consume if request.raw_path == b"/yes" else refuse))

    head = b"PUT %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    with some_threads() as pool, plain(answer, pool) as place:
        with place.connect() as connection:
            connection.sendall(head % b"/no")
            received = b"".join(iter(lambda: connection.recv(65536), b""))
            # The connection ended: what came next could be the body or another request.
            assert received.startswith(b"HTTP/1.1 403")
        with place.connect() as connection:
            connection.sendall(head % b"/yes")
            assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(b"abc")
            assert connection.recv(1000).endswith(b"\r\n\r\n3")


def test_an_early_answer_is_read_by_a_client_that_is_still_sending() -> None:
    async def answer(request: Request) -> Reply:
        raise Fault(Kind.DENIED, "not here")

    head = b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    get = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with some_threads() as pool, plain(answer, pool) as place:
        with place.connect() as connection:
            connection.sendall(head % (3 << 20) + bytes(3 << 20) + get)
            received = b""
            while received.count(b"HTTP/1.1 403") < 2:
                received += connection.recv(65536)
        with place.connect() as connection:
            connection.sendall(head % (1 << 30) + bytes(1 << 20))
            assert connection.recv(65536).startswith(b"HTTP/1.1 403")
            # What never ends is not read for ever.
            with contextlib.suppress(OSError):
                while connection.recv(65536):
                    continue


def test_a_body_that_trickles_is_given_up_on() -> None:
    async def answer(request: Request) -> Reply:
        await read_body(request, 1 << 20, Limits(idle_seconds=0.3, body_rate=1000.0))
        return Reply(200)

    with some_threads() as pool, plain(answer, pool) as place, place.connect() as connection:
        connection.sendall(b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        sender = threading.Thread(target=_trickle, args=(connection,))
        sender.start()
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")
        sender.join()


def _trickle(connection: socket.socket) -> None:
    try:
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)
    except OSError:
        return


def test_slow_senders_are_bounded_and_keep_nobody_else_waiting() -> None:
    began = threading.Barrier(LIMITS.uploads + 1)

    async def answer(request: Request) -> Reply:
        if request.method == "GET":
            return Reply(200, body=await pool.run(lambda: b"free"))
        upload = Upload(request, LIMITS)

        def consume() -> None:
            upload.read(1)
            began.wait(20)
            while upload.read(1 << 20):
                continue

        await upload.into(pool, consume)
        return Reply(200)

    head = b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (1 << 20)
    start = head + bytes(LIMITS.upload_buffer)
    with some_threads() as pool, plain(answer, pool) as place, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(place.connect()) for _ in range(LIMITS.uploads)]
        for connection in slow:
            connection.sendall(start)
        began.wait(20)
        with place.connect() as further:
            further.sendall(start)
            assert further.recv(65536).startswith(b"HTTP/1.1 503")
        assert place.say(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").endswith(b"free")
        for connection in slow:
            connection.sendall(bytes((1 << 20) - LIMITS.upload_buffer))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
