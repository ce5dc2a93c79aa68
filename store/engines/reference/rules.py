"""What names and attributes may be, and what a rename may replace.

1. Each check returns or raises the error that the contract names.
"""

from __future__ import annotations

from collections.abc import Mapping

from store.engines.reference.nodes import Node
from store.errors import Exists, InvalidName, IsADirectory, NotADirectory, NotEmpty, NotPermitted, TooLarge
from store.model import EntryKind
from store.names import explain_name

MAX_XATTR = 65_536


def check_name(name: bytes) -> None:
    """Raise `InvalidName` for what nothing can be called."""
    why = explain_name(name)
    if why is not None:
        raise InvalidName(name, why)


def check_xattr(name: bytes, value: bytes | None) -> None:
    """Raise `NotPermitted` or `TooLarge` for an attribute that nobody can set."""
    if not name.startswith(b"user."):
        raise NotPermitted(name, "only user.* attributes can be set")
    if value is not None and len(value) > MAX_XATTR:
        raise TooLarge(name, f"an extended attribute has at most {MAX_XATTR} bytes")


def attach_xattrs(node: Node, before: dict[bytes, bytes], changes: Mapping[bytes, bytes | None]) -> None:
    """Give a node the attributes it is to carry."""
    merged: dict[bytes, bytes | None] = {**before, **changes}
    node.xattrs = {key: value for key, value in merged.items() if value is not None}


def check_replaceable(moving: Node, standing: Node, name: bytes, *, replace: bool) -> None:
    """Refuse a rename that cannot replace what stands at the new name."""
    if not replace:
        raise Exists(name)
    if moving.kind is EntryKind.DIRECTORY and standing.kind is not EntryKind.DIRECTORY:
        raise NotADirectory(name)
    if moving.kind is not EntryKind.DIRECTORY and standing.kind is EntryKind.DIRECTORY:
        raise IsADirectory(name)
    if standing.links:
        raise NotEmpty(name)
