"""The server of the daemon itself: the door on a Unix socket, in a thread of its own.

1. The socket is bound when `HttpServer` is made, so "address in use" is an error of the caller and not of a thread.
2. The Unix socket belongs to its owner alone from the moment it exists; a stale one is replaced, a live one never.
3. Signals belong to the daemon: it calls `drain`, which refuses further connections, ends event streams and lets requests finish.
4. `start`, `wait_started` and `drain` are for the daemon's thread; everything else happens on the server's event loop.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path

import uvicorn

from interfaces.http.app import Door
from interfaces.web.family import Family, Members
from interfaces.web.limits import Limits
from interfaces.web.serve import configure


class HttpServer:
    """A running door."""

    def __init__(self, door: Door, *, socket_path: Path, limits: Limits | None = None) -> None:
        """Bind the socket. Raises `OSError` when it is in use."""
        limits = limits or Limits()
        self._door = door
        self._socket_path = socket_path
        self._socket = _bind(socket_path)
        self._started = threading.Event()
        self._server = _Announcing(configure(Family(Members(http=door)), limits), self._started)
        self._thread = threading.Thread(target=self._serve, name="http-server", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def wait_started(self, timeout: float) -> bool:
        """Wait until requests are answered, at most `timeout` seconds; tell whether they are."""
        return self._started.wait(timeout)

    def drain(self, timeout: float) -> bool:
        """Stop: finish what is under way, at most about `timeout` seconds; tell whether all of it ended. Repeats do nothing."""
        self._door.drain()
        self._server.config.timeout_graceful_shutdown = max(1, round(timeout))
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(timeout + 2.0)
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            self._socket_path.unlink()
        return not self._thread.is_alive()

    def _serve(self) -> None:
        self._server.run([self._socket])


class _Announcing(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, started: threading.Event) -> None:
        super().__init__(config)
        self._announce = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce.set()


def _bind(path: Path) -> socket.socket:
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Linux gives the file the mode of the unbound socket: after bind it would be too late, and a umask is every thread's.
    os.fchmod(bound.fileno(), 0o600)
    try:
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    return bound


def _remove_stale(path: Path) -> None:
    """Remove a socket nobody listens on. Raises `OSError` when somebody does, or when the path is something else."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError(98, "another process serves this socket", str(path))
