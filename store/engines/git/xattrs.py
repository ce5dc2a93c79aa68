"""Extended attributes of a node: which are allowed, and how a row holds them.

1. Pure: values in, values out.
2. Names begin with ``user.``; what else there may be is the host's, not the tree's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from store.errors import NotPermitted, TooLarge

_LENGTHS = struct.Struct(">HI")
_LONGEST_NAME = 255
_LONGEST_VALUE = 64 << 10


def check_xattr(name: bytes, value: bytes | None) -> None:
    """Return when an attribute may be set. Raises `NotPermitted`, `TooLarge`."""
    if not name.startswith(b"user.") or len(name) > _LONGEST_NAME:
        raise NotPermitted(name, "only user attributes can be set")
    if value is not None and len(value) > _LONGEST_VALUE:
        raise TooLarge(name, f"an attribute has at most {_LONGEST_VALUE} bytes")


def encode_xattrs(xattrs: Mapping[bytes, bytes]) -> bytes | None:
    """Return extended attributes as one value for the row; None when there are none."""
    return b"".join(_LENGTHS.pack(len(name), len(value)) + name + value for name, value in sorted(xattrs.items())) or None


def decode_xattrs(data: bytes | None) -> dict[bytes, bytes]:
    """Return what `encode_xattrs` was given."""
    xattrs, position, data = {}, 0, data or b""
    while position < len(data):
        name_length, value_length = _LENGTHS.unpack_from(data, position)
        start = position + _LENGTHS.size
        position = start + name_length + value_length
        xattrs[data[start : start + name_length]] = data[start + name_length : position]
    return xattrs


def change_xattrs(data: bytes | None, changes: Mapping[bytes, bytes | None]) -> bytes | None:
    """Return encoded attributes with some set and (None) some removed; removing one that is missing does nothing."""
    if not changes:
        return data
    xattrs = decode_xattrs(data)
    for name, value in changes.items():
        if value is None:
            xattrs.pop(name, None)
        else:
            xattrs[name] = value
    return encode_xattrs(xattrs)
