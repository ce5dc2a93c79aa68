"""Which extended attributes a mount has: ``user.*``, and nothing that would change what a program may do.

1. Reading any other name finds nothing: the kernel asks for ``security.capability`` before every write and must not pay for it.
2. Setting any other name is not supported, which tools like ``cp -a`` and ``tar`` expect and pass over.
"""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Workspace

PREFIX = b"user."


def get_xattr(workspace: Workspace, node: int, name: bytes) -> bytes:
    """Return a value. Raises `Kind.NO_ATTRIBUTE`."""
    if not name.startswith(PREFIX):
        raise Fault(Kind.NO_ATTRIBUTE, "only user.* attributes are kept")
    value = workspace.xattrs(node).get(name)
    if value is None:
        raise Fault(Kind.NO_ATTRIBUTE, "no such attribute")
    return value


def set_xattr(workspace: Workspace, node: int, name: bytes, value: bytes | None) -> None:
    """Set or (None) remove a value. Raises `Kind.UNSUPPORTED` outside ``user.``, `Kind.NO_ATTRIBUTE` on removing a missing one."""
    if not name.startswith(PREFIX):
        raise Fault(Kind.UNSUPPORTED, "only user.* attributes are kept")
    workspace.set_xattr(node, name, value)


def list_xattrs(workspace: Workspace, node: int) -> list[bytes]:
    """Return the names, ordered."""
    return sorted(workspace.xattrs(node))
