"""An application of the HTTP family on a real socket, for tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from interfaces.web.family import Family, Member, Members
from interfaces.web.limits import Limits
from interfaces.web.serve import Tls, run

_START_SECONDS = 20
_DRAIN_SECONDS = 5.0


@contextmanager
def serving(
    app: Family | Member,
    *,
    limits: Limits | None = None,
    tls: Tls | None = None,
    proxies: frozenset[str] = frozenset(),
    proxy_secret: bytes = b"",
) -> Iterator[str]:
    """Serve a family, or one door for every path, in a thread while the block runs and give its base url, without a slash at the end."""
    family = app if isinstance(app, Family) else Family(Members(http=app))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        started, stopping = threading.Event(), threading.Event()
        failures: list[BaseException] = []

        def serve() -> None:
            try:
                run(
                    family,
                    descriptor=listening.detach(),
                    limits=limits or Limits(),
                    ready=started.set,
                    stopping=stopping,
                    drain_seconds=_DRAIN_SECONDS,
                    tls=tls,
                    proxies=proxies,
                    proxy_secret=proxy_secret,
                )
            except BaseException as error:
                failures.append(error)
            finally:
                started.set()

        thread = threading.Thread(target=serve, name="serving")
        thread.start()
        try:
            assert started.wait(_START_SECONDS), "the server did not start"
            assert not failures, failures
            yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        finally:
            stopping.set()
            thread.join(_DRAIN_SECONDS + 10)
        assert not failures, failures
        assert not thread.is_alive(), "the server did not stop"
