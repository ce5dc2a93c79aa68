"""Servers outside for tests: one that shows what it was sent, and git's own `http-backend` behind HTTP Basic."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

GIT_USER = "nas"


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Upstream:
    """A server that keeps what it was sent and answers what `answers` says for a path, or with what it saw."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    answers: dict[str, Callable[[Seen], tuple[int, dict[str, str], bytes]]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def upstream() -> Iterator[Upstream]:
    """Run such a server while the block runs."""
    state = Upstream()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen = Seen(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            state.seen.append(seen)
            respond = state.answers.get(urlsplit(self.path).path, _echo)
            status, headers, content = respond(seen)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers and "Transfer-Encoding" not in headers:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *arguments: object) -> None:
            return

    with _serving(Handler) as port:
        state.port = port
        yield state


def _echo(seen: Seen) -> tuple[int, dict[str, str], bytes]:
    shown = {"method": seen.method, "target": seen.target, "headers": seen.headers, "body": base64.b64encode(seen.body).decode()}
    return 200, {"Content-Type": "application/json", "ETag": '"1"', "Set-Cookie": "session=1"}, json.dumps(shown).encode()


@contextmanager
def git_upstream(folder: Path, password: str) -> Iterator[str]:
    """Serve the bare repositories in a folder with ``git http-backend`` for `GIT_USER` and a password; gives the url."""
    right = "Basic " + base64.b64encode(f"{GIT_USER}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self._body()
            if self.headers.get("Authorization") != right:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            parts = urlsplit(self.path)
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "REMOTE_USER": GIT_USER,
                "REQUEST_METHOD": self.command,
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
            status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
            self.send_response(status)
            for name, value in fields:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        do_GET = do_POST = answer

        def log_message(self, format: str, *arguments: object) -> None:
            return

    with _serving(Handler) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
