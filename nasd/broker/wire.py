"""One HTTP exchange with one pinned server. No redirect is followed, no proxy asked, no cookie kept, no connection used again.

1. The host is the one it was pinned to, verified by TLS against the system's authorities and those that the account names.
2. Time and size are bounded as a whole: at the deadline the socket is shut down, whatever the other side is doing.
3. What goes wrong leaves as a fault that names the server and never what was sent to it.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from trust.accounts import Destination

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one exchange may take: seconds in all, bytes of the answer's body."""

    seconds: float = 60.0
    largest: int = 16 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def exchange(
    destination: Destination,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    bounds: Bounds,
    authorities: str = "",
) -> Reply:
    """Send one request and return the answer. Raises `Kind.UNAVAILABLE`, `Kind.TOO_LARGE`."""
    deadline = _Deadline(bounds.seconds)
    try:
        with _connected(destination, deadline, authorities) as connection:
            connection.putrequest(method, destination.prefix + target, skip_host=True, skip_accept_encoding=True)
            own = {"Host": destination.authority, "User-Agent": "agent-nas", "Accept-Encoding": "identity", "Connection": "close"}
            for name, value in {**own, **headers}.items():
                connection.putheader(name, value)
            if body or method not in ("GET", "HEAD", "DELETE", "OPTIONS"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            reply = _read(connection.getresponse(), destination, bounds)
    except (OSError, http.client.HTTPException) as error:
        raise _silence(destination, deadline, _describe(error)) from None
    if deadline.passed:
        raise _silence(destination, deadline, "")  # an answer without a length looks complete when it is cut
    return reply


class _Deadline:
    """Shuts a connection down when its time is over, and tells whether it did."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.passed = False

    @contextmanager
    def watching(self, connected: socket.socket) -> Iterator[None]:
        """Watch a connection while the block runs."""
        own = connected.dup()  # TLS takes the descriptor over; shutting down a duplicate ends the connection all the same
        watch = threading.Timer(self.seconds, self._end, (own,))
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()
            own.close()

    def _end(self, own: socket.socket) -> None:
        self.passed = True
        with suppress(OSError):
            own.shutdown(socket.SHUT_RDWR)


@contextmanager
def _connected(destination: Destination, deadline: _Deadline, authorities: str) -> Iterator[http.client.HTTPConnection]:
    raw = socket.create_connection((destination.host, destination.port), timeout=deadline.seconds)
    try:
        with deadline.watching(raw):
            connection = http.client.HTTPConnection(destination.host, destination.port)
            connection.sock = _secured(raw, destination.host, authorities) if destination.scheme == "https" else raw
            try:
                yield connection
            finally:
                connection.close()
    finally:
        raw.close()


def _silence(destination: Destination, deadline: _Deadline, why: str) -> Fault:
    if deadline.passed:
        why = f"not within {deadline.seconds:g} seconds"
    return Fault(
        Kind.UNAVAILABLE,
        f"{destination.scheme}://{destination.authority} does not answer: {why}",
        hint="the request may have arrived; look before you repeat it",
    )


def _secured(raw: socket.socket, host: str, authorities: str) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    if authorities:
        context.load_verify_locations(cafile=authorities)
    return context.wrap_socket(raw, server_hostname=host)


def _read(response: http.client.HTTPResponse, destination: Destination, bounds: Bounds) -> Reply:
    pieces, size = [], 0
    while piece := response.read(_PIECE):
        size += len(piece)
        if size > bounds.largest:
            raise Fault(
                Kind.TOO_LARGE,
                f"{destination.authority} answers with more than {bounds.largest} bytes",
                hint="ask for less, for example with a range or a page",
            )
        pieces.append(piece)
    return Reply(response.status, tuple(response.getheaders()), b"".join(pieces))


def _describe(error: Exception) -> str:
    """Return what went wrong in words that cannot repeat what was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted ({error.verify_message})"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return type(error).__name__
