"""Paths between bytes and text. Pure.

Names are bytes inside. In documents they are text: UTF-8 where they are UTF-8, and each other byte as ``\\xNN``;
a backslash in a name is ``\\\\``, so that the text stands for exactly one name.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(\\))")


def render_path(path: bytes | None) -> str:
    """Return the text that stands for a path; the root is ``/``."""
    if not path:
        return "/"
    return path.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def parse_path(text: str) -> bytes:
    """Return the path a text stands for, outer slashes ignored. Raises `ValueError` for ``..``, ``.``, empty names and NUL."""
    raw = text.encode("utf-8", "surrogateescape")
    path = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]) if match[1] else b"\\", raw).strip(b"/")
    names = path.split(b"/") if path else []
    if any(name in (b"", b".", b"..") or b"\x00" in name for name in names):
        raise ValueError(f"{text!r} is not a path: names may not be empty, '.' or '..'")
    return path


def is_below(path: bytes, directory: bytes) -> bool:
    """Tell whether a path is a directory itself or anywhere below it."""
    return not directory or path == directory or path.startswith(directory + b"/")
