"""Parts of files: sent by the kernel or by us, warm or cold, whole or shrinking."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from interfaces.faults import Fault, Kind
from interfaces.web.asgi import Extent, Reply, Request
from interfaces.web.contents import PIECE, HandleContent, extents, pieces, read_exactly
from interfaces.web.pool import Pool
from interfaces.web.sending import bring_in, is_in_memory
from interfaces.web.serve import Tls
from tests.interfaces.web.plain import Place, plain, some_threads
from tests.interfaces.web.test_server import GET

CONTENT = os.urandom(3 * PIECE + 12_345)


@dataclass
class Lent:
    """A handle over a file of the system, which lends its descriptor or does not; reads are `short` bytes at most."""

    node: int
    lends: bool = True
    short: int = 1 << 30

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self.node, min(size, self.short), offset)

    def lend(self, offset: int, size: int) -> int | None:
        return self.node if self.lends else None

    def write(self, offset: int, data: bytes) -> int:
        raise AssertionError

    def sync(self) -> None:
        raise AssertionError

    def close(self) -> None:
        os.close(self.node)


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[Lent]:
    (tmp_path / "file").write_bytes(CONTENT)
    handle = Lent(os.open(tmp_path / "file", os.O_RDWR))
    yield handle
    handle.close()


async def send_all(request: Request, handle: Lent, pool: Pool) -> Reply:
    length = (("content-length", str(len(CONTENT))),)
    return Reply(200, length, pieces=extents(handle, 0, len(CONTENT), pool, request))


def content_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("lends", [True, False])
def test_a_file_arrives_whole_whoever_sends_it(handle: Lent, lends: bool) -> None:
    handle.lends = lends
    with some_threads() as pool, plain(lambda request: send_all(request, handle, pool), pool) as place:
        assert content_of(place.say(GET)) == CONTENT
        assert content_of(place.say(GET.replace(b"Connection: close", b"X: y") + GET)).endswith(CONTENT)


def test_files_alternate_with_bytes_in_their_order(handle: Lent) -> None:
    async def answer(request: Request) -> Reply:
        async def mixed() -> object:
            for number in range(50):
                yield b"%02d" % number * 1000
                yield Extent(handle.node, number, 1)

        return Reply(200, (("content-length", str(50 * 2001)),), pieces=mixed())  # type: ignore[arg-type]

    with some_threads() as pool, plain(answer, pool) as place:
        assert content_of(place.say(GET)) == b"".join(b"%02d" % number * 1000 + CONTENT[number : number + 1] for number in range(50))


def test_a_file_that_is_shorter_than_announced_ends_the_connection(handle: Lent, caplog: pytest.LogCaptureFixture) -> None:
    os.truncate(handle.node, PIECE)
    with some_threads() as pool, plain(lambda request: send_all(request, handle, pool), pool) as place:
        assert content_of(place.say(GET)) == CONTENT[:PIECE]
    assert "the file shrank" in caplog.text


def test_a_client_that_takes_nothing_of_a_file_is_cut_off(handle: Lent) -> None:
    os.truncate(handle.node, 1 << 30)

    async def answer(request: Request) -> Reply:
        return Reply(200, (("content-length", str(1 << 30)),), pieces=extents(handle, 0, 1 << 30, pool, request), release=released.set)

    released = threading.Event()
    with some_threads() as pool, plain(answer, pool) as place, place.connect() as connection:
        connection.sendall(GET)
        assert released.wait(20)
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1 << 20):
                received += len(piece)
    assert received < 1 << 30


def test_what_was_dropped_from_memory_is_brought_in(handle: Lent) -> None:
    os.fsync(handle.node)
    os.posix_fadvise(handle.node, 0, 0, os.POSIX_FADV_DONTNEED)
    bring_in(handle.node, 0, len(CONTENT))
    assert is_in_memory(handle.node, 0, len(CONTENT))
    assert not is_in_memory(handle.node, len(CONTENT), len(CONTENT) + 10)


def test_pieces_are_exact_whatever_a_read_returns(handle: Lent) -> None:
    handle.short = 100_000

    async def gather() -> bytes:
        with some_threads() as pool:
            return b"".join([piece async for piece in pieces(handle, 5, len(CONTENT), pool)])

    assert asyncio.run(gather()) == CONTENT[5:]
    with pytest.raises(Fault) as caught:
        read_exactly(handle, len(CONTENT) - 5, 6)
    assert caught.value.kind is Kind.CONFLICT


def test_a_part_is_a_content(handle: Lent) -> None:
    whole, part = HandleContent(handle), HandleContent(handle, 10, 20)
    assert b"".join(iter(lambda: whole.read(PIECE), b"")) == CONTENT
    assert (part.read(6), part.read(6), part.read(6)) == (CONTENT[10:16], CONTENT[16:20], b"")


def test_over_tls_files_are_sent_by_us(handle: Lent, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with some_threads() as pool, plain(lambda request: send_all(request, handle, pool), pool, tls=Tls(certificate, key)) as place:
        assert content_of(say_secretly(place, context)) == CONTENT


def say_secretly(place: Place, context: ssl.SSLContext) -> bytes:
    with context.wrap_socket(place.connect()) as connection:
        connection.sendall(GET)
        return b"".join(iter(lambda: connection.recv(1 << 20), b""))
