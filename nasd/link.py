"""How a gateway process has the daemon carry out an operation: a Unix socket, one question and one answer at a time.

1. The socket belongs to the user the daemon runs as, and the kernel says who connects (``SO_PEERCRED``): nobody else is heard, so a
   gateway is believed whom it let in. No secret travels. Who listens may hear some processes of that user only.
2. A message is its length in four bytes, most significant first, and that much JSON. Neither side accepts one above `LONGEST`.
3. A connection answers one question after the other; a gateway keeps as many as it asked questions at once. When the daemon is away,
   a question fails as `Kind.UNAVAILABLE`. One that was sent and not answered is not repeated: it may have been carried out.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.faults import flatten, revive

LONGEST = 64 << 20
"""The longest message, in bytes."""
_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("3i")
_INTERNAL = Fault(Kind.INTERNAL, "something went wrong inside the appliance", hint="the daemon's log has the details")
log = logging.getLogger("nasd.link")

Answer = Callable[[Document], Document]
"""Answers one question. Raises `Fault`."""

Hears = Callable[[int], bool]
"""Tells of a process number whether that process is heard."""


class LinkServer:
    """The daemon's end."""

    def __init__(self, path: Path, answer: Answer, hears: Hears = lambda _: True) -> None:
        """Listen at `path` to the processes that it `hears`; `answer` is called in a thread of the connection. Raises `OSError`."""
        self._answer = answer
        self._hears = hears
        self._path = path
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Linux gives the file the mode of the unbound socket.
        os.fchmod(self._socket.fileno(), 0o600)
        self._socket.bind(str(path))
        self._socket.listen(128)
        threading.Thread(target=self._accept, name="link", daemon=True).start()

    def close(self) -> None:
        """Hear nobody any more; what is being answered is answered."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="link-connection", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
            if uid not in (os.getuid(), 0) or not self._hears(pid):
                log.warning("process %d of user %d asked at %s and was not heard", pid, uid, self._path.name)
                return
            try:
                while (question := _receive(connection)) is not None:
                    connection.sendall(self._respond(question))
            except OSError as error:
                log.info("a gateway left: %s", error)

    def _respond(self, question: Document) -> bytes:
        try:
            return _encode({"answer": self._answer(question)})
        except Fault as fault:
            return _encode({"fault": flatten(fault)})
        except Exception:
            # The gateway learns that it failed; the log why.
            log.exception("%s failed", question.get("operation"))
            return _encode({"fault": flatten(_INTERNAL)})


class LinkClient:
    """A gateway's end. Any thread may ask."""

    def __init__(self, path: Path) -> None:
        """Ask at `path`, from the first question on."""
        self._path = path
        self._idle: list[socket.socket] = []

    def ask(self, question: Document) -> Document:
        """Return the answer to a question. Raises its `Fault`, and `Kind.UNAVAILABLE` when the daemon is away."""
        data = _encode(question)
        try:
            answer = self._exchange(data)
        except OSError as error:
            why = error.strerror or str(error)
            raise Fault(
                Kind.UNAVAILABLE, f"the daemon does not answer: {why}", hint="repeat in a moment; `nas status` tells more"
            ) from error
        if fault := answer.get("fault"):
            raise revive(fault)
        document: Document = answer["answer"]
        return document

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, data: bytes) -> Document:
        connection = self._take()
        try:
            connection.sendall(data)
            answer = _receive(connection)
        except BaseException:
            connection.close()
            raise
        if answer is None:
            connection.close()
            raise ConnectionResetError(104, "it left before it answered")
        self._idle.append(connection)
        return answer

    def _take(self) -> socket.socket:
        """Return a connection that nobody uses, or another one."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return _connect(self._path)
            if not _is_closed(connection):
                return connection
            connection.close()


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _is_closed(connection: socket.socket) -> bool:
    """Tell whether the other end is gone; while it is there an idle connection has nothing to read."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _encode(message: Document) -> bytes:
    """Return a message as it travels. Raises `Kind.TOO_LARGE`."""
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogateescape")
    if len(data) > LONGEST:
        raise Fault(Kind.TOO_LARGE, f"the message has more than {LONGEST} bytes", hint="ask for less at once")
    return _LENGTH.pack(len(data)) + data


def _receive(connection: socket.socket) -> Document | None:
    """Return the next message, None at the end. Raises `OSError` when it breaks off or is too long."""
    head = _receive_exactly(connection, _LENGTH.size)
    if not head:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > LONGEST:
        raise OSError(90, "the message is too long")
    try:
        message = json.loads(_receive_exactly(connection, length).decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise OSError(71, "the message is not JSON") from error
    if not isinstance(message, dict):
        raise OSError(71, "the message is not an object")
    return message


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Return `size` bytes; nothing when the other end closed before the first."""
    parts: list[bytes] = []
    missing = size
    while missing and (part := connection.recv(min(missing, 1 << 20))):
        parts.append(part)
        missing -= len(part)
    if missing and parts:
        raise ConnectionResetError(104, "it broke off")
    return b"".join(parts)
