r"""Paths between what a model writes and the names of a branch, and the URIs of resources. Pure.

1. A path is names joined by ``/``; outer slashes say nothing, the root is ``/``. A name is bytes: UTF-8 where it is UTF-8, each other byte
   ``\xNN``, a backslash ``\\``, as in every document of the API, so a path that was shown can be given back.
2. A resource is ``nas://<branch>/<path>``, both percent-encoded; the branch is one segment, so its slash reads ``%2F``.
3. What is no path fails as `Kind.INVALID` and says how to write one.
"""

from __future__ import annotations

import re
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

from interfaces.faults import Fault, Kind

SCHEME = "nas"
TEMPLATE = "nas://{branch}/{+path}"
"""The template of every resource (RFC 6570)."""

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(\\))")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def parse_path(text: str) -> bytes:
    """Return the path a text stands for. Raises `Kind.INVALID`."""
    raw = text.encode("utf-8", "replace")
    return _checked(_ESCAPE.sub(lambda match: bytes([int(match[1], 16)]) if match[1] else b"\\", raw).strip(b"/"), text)


def render_path(path: bytes) -> str:
    """Return the text that stands for a path."""
    return path.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace") or "/"


def split_path(path: bytes) -> tuple[bytes, bytes]:
    """Return directory and name of a path. Raises `Kind.INVALID` for the root, which has none."""
    if not path:
        raise Fault(Kind.INVALID, "the root itself cannot be changed", hint="name something in it")
    directory, _, name = path.rpartition(b"/")
    return directory, name


def join_path(directory: bytes, name: bytes) -> bytes:
    """Return the path of a name in a directory."""
    return directory + b"/" + name if directory else name


def render_uri(branch: str, path: bytes) -> str:
    """Return the URI of a resource."""
    return f"{SCHEME}://{quote(branch, safe='')}/{quote_from_bytes(path, safe='/')}"


def parse_uri(uri: str) -> tuple[str, bytes]:
    """Return branch and path of a resource. Raises `Kind.INVALID`."""
    scheme, separator, rest = uri.partition("://")
    branch, _, path = rest.partition("/")
    if scheme != SCHEME or not separator or not branch or not uri.isascii() or _BAD_PERCENT.search(uri):
        raise Fault(Kind.INVALID, f"{uri!r} is not the URI of a resource", hint=f"write {TEMPLATE}, percent-encoded")
    try:
        name = unquote_to_bytes(branch).decode()
    except UnicodeDecodeError as error:
        raise Fault(Kind.INVALID, f"{branch!r} is not the name of a branch", hint="percent-encode its UTF-8") from error
    return name, _checked(unquote_to_bytes(path).strip(b"/"), uri)


def _checked(path: bytes, text: str) -> bytes:
    names = path.split(b"/") if path else []
    if any(name in {b"", b".", b".."} or b"\0" in name for name in names):
        raise Fault(
            Kind.INVALID,
            f"{text!r} is not a path",
            hint="write names joined by '/', without empty names, '.' or '..', for example src/a.py",
        )
    return path
