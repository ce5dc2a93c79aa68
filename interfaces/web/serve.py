"""The server of a gateway process: the family on a socket that the process inherited.

1. `run` serves in the calling thread until told to stop; signals are the caller's.
2. Stopping drains: no further connection is taken, answers without an end are asked to end, requests under way finish in the time given.
3. What a client says of itself through a proxy counts only when it comes from a declared proxy's address.
4. A key and a certificate make it TLS 1.2 or later; without them the socket must be a loopback one or stand behind a proxy, which whoever
   binds it has checked.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from interfaces.web.asgi import App, Receive, Scope, Send
from interfaces.web.limits import Limits
from interfaces.web.protocol import limited_protocol
from interfaces.web.vouching import Vouching

_BACKLOG = 512
_KEEP_ALIVE_SECONDS = 75


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM: the certificate with its chain, and its key."""

    certificate: Path
    key: Path


class Served(Protocol):
    """An application that can be asked to come to an end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    def drain(self) -> None:
        """Let answers that have no end of their own end soon, and begin none."""


def run(
    app: Served,
    *,
    descriptor: int,
    limits: Limits,
    ready: Callable[[], None],
    stopping: threading.Event,
    drain_seconds: float,
    tls: Tls | None = None,
    proxies: frozenset[str] = frozenset(),
    proxy_secret: bytes = b"",
) -> None:
    """Serve `app` on the listening socket `descriptor` until `stopping` is set, then drain it; takes over the descriptor.

    `ready` is called once requests are answered. Several processes may serve one socket. Raises `OSError` for a key or certificate that
    cannot be used, and `SystemExit` when the application does not start.
    """
    with socket.socket(fileno=descriptor) as listening:
        config = configure(with_proxies(app, proxies, proxy_secret), limits, tls)
        config.timeout_graceful_shutdown = max(1, round(drain_seconds))
        _Gateway(config, app, ready, stopping).run([listening])


def with_proxies(app: App, proxies: frozenset[str], secret: bytes = b"") -> App:
    """Return the application, seeing clients of the declared proxies as the proxies tell them; certificates only with `secret`."""
    if not proxies:
        return Vouching(app, proxies, b"")
    trusted: App = ProxyHeadersMiddleware(app, trusted_hosts=sorted(proxies))  # type: ignore[arg-type, assignment]
    return Vouching(trusted, proxies, secret)


def configure(app: App, limits: Limits, tls: Tls | None = None) -> uvicorn.Config:
    """Return the server's settings for an application. Raises `OSError` for a key or certificate that cannot be used."""
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits),
        loop="uvloop",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )
    config.load()
    if config.ssl is not None:
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    return config


class _Gateway(uvicorn.Server):
    """A server that its process starts, and stops without a signal."""

    def __init__(self, config: uvicorn.Config, app: Served, ready: Callable[[], None], stopping: threading.Event) -> None:
        super().__init__(config)
        self._app = app
        self._ready = ready
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._stopping.is_set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.drain()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
