"""Which worker of an appliance a connection went to, and connections to a chosen one."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.contract.doors.clients.wire import Wire
from tests.e2e.conftest import wait_until


def connect_to(client: Wire, worker: int, workers: Sequence[int]) -> None:
    """Connect a client to one worker, by holding still all others while it does. Fails when another one took the connection."""
    with _still([other for other in workers if other != worker]):
        connection = client.connect()
        wait_until(lambda: worker_of(connection, workers) == worker)


def worker_of(connection: socket.socket, workers: Sequence[int]) -> int:
    """Return which of the workers has the other end of a connection, 0 while it waits for one."""
    inode = _other_end(connection)
    return next((worker for worker in workers if f"socket:[{inode}]" in _open_by(worker)), 0)


@contextmanager
def _still(workers: Sequence[int]) -> Iterator[None]:
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            os.kill(worker, signal.SIGCONT)


def _other_end(connection: socket.socket) -> str:
    """Return the inode of the other end of a loopback connection (proc(5), net/tcp)."""
    ends = [_hexadecimal(*connection.getpeername()), _hexadecimal(*connection.getsockname())]
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return next(fields[9] for fields in lines if fields[1:3] == ends)


def _hexadecimal(address: str, port: int) -> str:
    return f"{int.from_bytes(socket.inet_aton(address), 'little'):08X}:{port:04X}"


def _open_by(process: int) -> set[str]:
    return {os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir() if path.is_symlink()}
