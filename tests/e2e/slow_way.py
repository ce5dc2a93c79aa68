"""A way to a server that is slow in one direction, as a bad line is: a real client then takes as long as a test needs it to."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

_PIECE = 4096
_SECONDS = 60.0


class SlowWay:
    """Carries connections to a server; what a client sends passes at `rate` bytes a second once `freely` bytes have passed.

    `carried` counts what clients sent, `said` is what the server answered.
    """

    def __init__(self, url: str, rate: int, freely: int) -> None:
        self._target = urlsplit(url)
        self._rate = rate
        self._freely = freely
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.carried = 0
        self.said = b""
        self._start(self._accept)

    @property
    def url(self) -> str:
        """Return the url to ask instead."""
        return urlunsplit(self._target._replace(netloc=f"127.0.0.1:{self._listening.getsockname()[1]}"))

    @property
    def is_slow(self) -> bool:
        """Tell whether a client has been on its way at the slow rate for about a second."""
        return self.carried > self._freely + self._rate

    def close(self) -> None:
        """Break off everything."""
        for each in [self._listening, *self._open]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(_SECONDS)

    def _start(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection((self._target.hostname or "", self._target.port or 80), _SECONDS)
                self._open += [client, server]
                answers = self._start(self._carry_back, server, client)
                self._start(self._carry_slowly, client, server, answers)

    def _carry_slowly(self, client: socket.socket, server: socket.socket, answers: threading.Thread) -> None:
        with contextlib.suppress(OSError):
            while piece := client.recv(_PIECE):
                server.sendall(piece)
                self.carried += len(piece)
                if self.carried > self._freely:
                    time.sleep(len(piece) / self._rate)
            server.shutdown(socket.SHUT_WR)
        # As on a line without this in between: what the server said arrives, then that it hears no more.
        answers.join(_SECONDS)
        client.close()

    def _carry_back(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := server.recv(_PIECE):
                self.said += piece
                client.sendall(piece)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_WR)


@contextmanager
def slow_way(url: str, rate: int = 16 << 10, freely: int = 512 << 10) -> Iterator[SlowWay]:
    """Run the block with a slow way to the server of `url`."""
    way = SlowWay(url, rate, freely)
    try:
        yield way
    finally:
        way.close()
