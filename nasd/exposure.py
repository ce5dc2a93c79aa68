"""Where the doors of the family are found: the port that the daemon binds, and the address of each door."""

from __future__ import annotations

import logging
import socket
import time

from nasd.config import DEFAULT_LISTEN, Settings
from nasd.errors import StartError

BACKLOG = 1024
_PATIENCE = 3.0
log = logging.getLogger("nasd.exposure")


def bind_port(settings: Settings) -> socket.socket:
    """Return a socket that listens where the settings say; a free port instead of the default one when that is taken.

    Raises `StartError` when an address that somebody chose is taken or not this machine's.
    """
    host, port = settings.address
    deadline = time.monotonic() + (_PATIENCE if settings.listen != DEFAULT_LISTEN else 0.0)
    while True:
        try:
            return _listen(host, port)
        except OSError as error:
            if settings.listen == DEFAULT_LISTEN:
                log.warning("port %s is taken; listening on a free one", port)
                return _listen(host, 0)
            if time.monotonic() > deadline:
                raise StartError(
                    f"cannot listen on {settings.listen}: {error.strerror}", hint="choose another address with --listen"
                ) from error
            time.sleep(0.1)


def describe_doors(settings: Settings, port: int) -> dict[str, str]:
    """Return the address of each door by its name."""
    host = settings.address[0]
    scheme = "https" if settings.tls_certificate else "http"
    base = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    return {
        "http": base,
        "webdav": f"{base}/dav/",
        "git": f"{base}/git/",
        "s3": base,
        "mcp": f"{base}/mcp",
        "socket": str(settings.socket),
    }


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound
