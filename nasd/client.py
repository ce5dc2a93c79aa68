"""The client of the daemon: one request at a time over its Unix socket, in the standard library alone.

1. What the daemon refuses is raised as the `Fault` it was there; a daemon that is not there is `NoDaemon`, with how to start it.
2. An effect carries an ``Idempotency-Key``, so it is repeated when a connection breaks and still happens once.
3. A secret goes into one header, nowhere else: not into an error, not into ``repr``.
4. Not for several threads at once: make one client for each.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.errors import StartError

_ATTEMPTS = 3
_PIECE = 1 << 16
_BROKEN = (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected, http.client.IncompleteRead)


class NoDaemon(StartError):
    """Nobody answers at the daemon's socket."""


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Client:
    """Requests on behalf of one secret."""

    def __init__(self, socket_path: Path, home: Path, secret: str | None, *, timeout: float | None = None) -> None:
        """Speak to the daemon of `home` at `socket_path`; `timeout` is in seconds of silence, None waits for ever."""
        self._socket_path = socket_path
        self._home = home
        self._secret = secret
        self._timeout = timeout

    def get(self, path: str, /, **query: Any) -> Document:
        """Return a document. Arguments that are None are left out. Raises `Fault`, `NoDaemon`."""
        return self._document("GET", _with_query(path, query), None, {})

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Document:
        """Have an effect, once, and return its document. Members that are None are left out. Raises `Fault`, `NoDaemon`."""
        content = json.dumps({name: value for name, value in (body or {}).items() if value is not None}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": os.urandom(16).hex()}
        return self._document("POST", path, content, headers)

    def items(self, path: str, /, **query: Any) -> Iterator[Document]:
        """Yield the items of a list, page after page. Raises as `get`."""
        cursor: str | None = None
        while True:
            page = self.get(path, **query, **({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if not page["truncated"] or cursor is None:
                return

    def read(self, path: str) -> Iterator[bytes]:
        """Yield the content at a path, piece by piece. Raises as `get`, and `Kind.UNAVAILABLE` when it breaks off."""
        try:
            with self._response("GET", path, None, {}) as response:
                yield from _read_pieces(response)
        except http.client.IncompleteRead as error:
            raise Fault(Kind.UNAVAILABLE, "the content broke off", hint="read it again") from error

    def events(self, after: int = -1) -> Iterator[Document]:
        """Yield what happens after a record (-1: from now on) until the daemon drains. Raises as `get`."""
        with self._response("GET", f"/v1/events?after={after}", None, {}) as response:
            yield from _read_events(response)

    def _document(self, method: str, target: str, content: bytes | None, headers: Mapping[str, str]) -> Document:
        for attempt in range(_ATTEMPTS):
            try:
                with self._response(method, target, content, headers) as response:
                    document: Document = json.loads(response.read())
                    return document
            except _BROKEN as error:
                if attempt == _ATTEMPTS - 1:
                    raise self._no_daemon("the daemon of {home} stopped answering") from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    @contextmanager
    def _response(self, method: str, target: str, content: bytes | None, headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        """Send a request and give its answer while the block runs; both ends are closed after it. Raises `Fault`, `NoDaemon`."""
        authority = {"Authorization": f"Bearer {self._secret}"} if self._secret else {}
        with closing(self._connect()) as connection:
            connection.request(method, target, content, {**authority, **headers})
            with connection.getresponse() as response:
                if response.status >= 400:
                    raise read_fault(response.status, response.read())
                yield response

    def _connect(self) -> _UnixConnection:
        connection = _UnixConnection(self._socket_path, self._timeout)
        try:
            connection.connect()
        except (FileNotFoundError, ConnectionRefusedError) as error:
            connection.close()
            raise self._no_daemon("no daemon is running for {home}") from error
        except PermissionError as error:
            connection.close()
            raise NoDaemon(f"the daemon of {self._home} belongs to somebody else", hint="run nas as the user who started it") from error
        return connection

    def _no_daemon(self, message: str) -> NoDaemon:
        return NoDaemon(message.format(home=self._home), hint="start it with `nas serve --background`")


def place(template: str, **names: str) -> str:
    """Return a path of the API with each name as one segment: ``place("/v1/runs/{run}/end", run="a/b")`` has ``a%2Fb``.

    Names are as the command line gives them, so what is no UTF-8 travels as the bytes it was.
    """
    return template.format(**{name: quote(os.fsencode(value), safe="") for name, value in names.items()})


def read_fault(status: int, content: bytes) -> Fault:
    """Return the fault an answer describes; one that describes none (it came from no door of ours) is `Kind.INTERNAL`."""
    try:
        problem = json.loads(content)
        hint, policy, gate = (str(problem.get(name, "")) for name in ("hint", "policy", "gate"))
        return Fault(Kind(problem["code"]), str(problem["message"]), hint=hint, policy=policy, gate=gate)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Fault(Kind.INTERNAL, f"the answer has status {status} and cannot be read", hint="see the daemon's log")


def _read_pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while piece := response.read(_PIECE):
        yield piece
    if response.length:
        # A read of a given size ends early without a word when the connection does.
        raise http.client.IncompleteRead(b"", response.length)


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {name: _render(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _render(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _read_events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[Document]:
    """Yield the documents of an event stream; comments keep it alive and say nothing. Raises the `Fault` an event carries."""
    kind = ""
    for line in lines:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            if kind == "fault":
                raise read_fault(0, value.encode())
            yield json.loads(value)
