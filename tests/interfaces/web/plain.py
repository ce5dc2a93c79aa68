"""A door without protocol of its own, for tests of what the family shares."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass

from interfaces.web.asgi import Receive, Scope, Send
from interfaces.web.exchange import Answer, Exchange
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from interfaces.web.problems import reply_problem
from interfaces.web.serve import Tls
from tests.serving import serving

LIMITS = Limits(header_seconds=1.0, idle_seconds=1.0, linger_seconds=0.5, upload_buffer=1 << 16, uploads=2, body_rate=1e9)


class Plain:
    """A member of the family that answers as it is told."""

    def __init__(self, pool: Pool, answer: Answer) -> None:
        self.drained = 0
        self._answer = answer
        self._exchange = Exchange("plain", pool, reply_problem)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._exchange.serve(scope, receive, send, self._answer)

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def drain(self) -> None:
        self.drained += 1


@dataclass
class Place:
    """A served door: where it is, and ways to speak to it as bytes."""

    url: str
    door: Plain

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def say(self, data: bytes) -> bytes:
        """Send bytes and return everything until the server ends the connection."""
        with self.connect() as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(65536), b""))


@contextmanager
def plain(answer: Answer, pool: Pool, *, tls: Tls | None = None, proxies: frozenset[str] = frozenset()) -> Iterator[Place]:
    """Serve a door that answers with `answer` while the block runs."""
    door = Plain(pool, answer)
    with serving(door, limits=LIMITS, tls=tls, proxies=proxies) as url:
        yield Place(url, door)


@contextmanager
def some_threads(waiting: int = LIMITS.uploads) -> Iterator[Pool]:
    with closing(Pool("plain", 4, waiting)) as pool:
        yield pool
