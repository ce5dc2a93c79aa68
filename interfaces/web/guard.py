"""What is looked at before a request means anything: where it came from. Pure.

1. A browser that was lured to a name pointing at this machine (DNS rebinding) sends that name as ``Host``: only known names pass, at
   every door. S3 has buckets as names below them.
2. A page of another origin sends ``Origin``: only what was asked by the very host and port that the page came from passes. A page at
   another port of this machine is somebody else's. Programs send none.
3. What a browser asks for another site without saying ``Origin`` (an image, a script) it tells by ``Sec-Fetch-Site``: only somebody
   following a link passes, which carries nothing but a question.
4. S3 leaves the pages to its rules of a bucket (CORS): every request there is signed, and a browser signs nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from interfaces.faults import Kind
from interfaces.web.problems import Refusal

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_ASKING = frozenset({"GET", "HEAD"})
_NEAR = frozenset({"none", "same-origin"})
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]/?#@\s]+))(?::\d{1,5})?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def check_source(method: str, headers: Mapping[str, str], names: frozenset[str]) -> None:
    """Raise a `Refusal` (421 or 403) unless a request names this door and comes from a page of it, or from no page."""
    check_host(headers, names)
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, headers.get("host", "")):
        raise Refusal(
            403, Kind.DENIED, f"pages of {origin!r} may not call this server", hint="call it from a program, or from its own pages"
        )
    follows = method in _ASKING and headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site", "none") not in _NEAR and not follows:
        raise Refusal(403, Kind.DENIED, "pages of other sites may not use this server", hint="open it by itself, or call it from a program")


def check_host(headers: Mapping[str, str], names: frozenset[str], *, below: bool = False) -> None:
    """Raise a `Refusal` (421) unless a request asks for one of these names or (`below`) for a name directly below one."""
    host = headers.get("host", "")
    name = host_name(host)
    if name in names or (below and name.partition(".")[2] in names):
        return
    raise Refusal(421, Kind.DENIED, f"this server does not answer to {host!r}", hint=f"ask for one of {', '.join(sorted(names))}")


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header in lower case, without port and brackets; empty when it is malformed."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2]).lower() if match else ""


def choose_request_id(headers: Mapping[str, str], fresh_id: Callable[[], str]) -> str:
    """Return the id a client chose for its request when it is short and plain, else a fresh one."""
    chosen = headers.get("x-request-id")
    return chosen if chosen is not None and _REQUEST_ID.fullmatch(chosen) else fresh_id()


def _is_own(origin: str, host: str) -> bool:
    """Tell whether a page of an origin came from the host and port that a request is for."""
    try:
        page, asked = urlsplit(origin), urlsplit(f"//{host}")
        usual = _PORTS[page.scheme]
        return (page.hostname, page.port or usual) == (asked.hostname, asked.port or usual) and page.hostname is not None
    except (ValueError, KeyError):
        return False
