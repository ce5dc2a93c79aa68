"""The witness over HTTP: threads of the standard library, bounded in number, time and size."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from witness.notes import Cosigner
from witness.protocol import MOST_BYTES, Answer, add_checkpoint, last_checkpoint
from witness.shelf import Shelf

_PATIENCE = 10.0
_MOST_AT_ONCE = 32


class Server(ThreadingHTTPServer):
    """Answers the two requests of a witness. `now` returns seconds since the epoch."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], shelf: Shelf, cosigner: Cosigner, now: Callable[[], float] = time.time) -> None:
        """Listen at `address`."""
        super().__init__(address, _Requests)
        self.shelf, self.cosigner, self.now = shelf, cosigner, now
        self._places = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def use_tls(self, certificate: Path, key: Path) -> None:
        """Speak TLS with a certificate chain and its key, in PEM."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection a thread; who comes while all are taken waits."""
        self._places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "nas-witness"
    sys_version = ""
    timeout = _PATIENCE
    server: Server

    def do_POST(self) -> None:
        """Take a checkpoint."""
        length = self.headers.get("Content-Length", "")
        if not self.path.endswith("/add-checkpoint"):
            self._send(Answer(HTTPStatus.NOT_FOUND, "no such place\n"))
        elif not length.isascii() or not length.isdigit():
            self._send(Answer(HTTPStatus.LENGTH_REQUIRED, "a Content-Length is needed\n"))
        elif int(length) > MOST_BYTES:
            self._send(Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES} bytes\n"))
        else:
            self._send(
                add_checkpoint(self.rfile.read(int(length)), self.server.shelf, self.server.cosigner, int(self.server.now())), read=True
            )

    def do_GET(self) -> None:
        """Tell the last checkpoint of a log."""
        parts = self.path.strip("/").split("/")
        found = len(parts) >= 2 and parts[-1] == "checkpoint"
        answer = last_checkpoint(parts[-2], self.server.shelf) if found else Answer(HTTPStatus.NOT_FOUND, "no such place\n")
        self._send(answer, read=True)

    def _send(self, answer: Answer, *, read: bool = False) -> None:
        content = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(content)))
        if not read:  # what was not read of the request must not be taken for the next one
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(content)
