"""What is looked at before a request means anything: where it came from. Pure.

1. A browser that was lured to a name pointing at this machine (DNS rebinding) sends that name as ``Host``: only known names pass.
2. A page of another origin sends ``Origin``: only the door's own origins pass. Programs send none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from interfaces.faults import Kind
from interfaces.web.problems import Refusal

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]/?#@\s]+))(?::\d{1,5})?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def check_source(headers: Mapping[str, str], names: frozenset[str]) -> None:
    """Raise a `Refusal` (421 or 403) unless a request names this door and comes from a page of it, or from no page."""
    host = headers.get("host", "")
    if host_name(host) not in names:
        raise Refusal(421, Kind.DENIED, f"this server does not answer to {host!r}", hint=f"ask for one of {', '.join(sorted(names))}")
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, names):
        raise Refusal(
            403, Kind.DENIED, f"pages of {origin!r} may not call this server", hint="call it from a program, or from its own pages"
        )


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header in lower case, without port and brackets; empty when it is malformed."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2]).lower() if match else ""


def choose_request_id(headers: Mapping[str, str], fresh_id: Callable[[], str]) -> str:
    """Return the id a client chose for its request when it is short and plain, else a fresh one."""
    chosen = headers.get("x-request-id")
    return chosen if chosen is not None and _REQUEST_ID.fullmatch(chosen) else fresh_id()


def _is_own(origin: str, names: frozenset[str]) -> bool:
    try:
        parts = urlsplit(origin)
        return parts.scheme in {"http", "https"} and (parts.hostname or "") in names
    except ValueError:
        return False
