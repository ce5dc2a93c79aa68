"""Open files of the reference engine.

1. A handle keeps its node alive; a file whose last name went disappears with its last handle.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable

from store.engines.reference.nodes import Node
from store.errors import NotPermitted, TooLarge, Unsupported
from store.model import Access, NodeId

MAX_FILE = 1 << 30
"""Largest file in bytes."""


class MemoryHandle:
    """An open file under the engine's lock; `changed` notes a write, `released` the end."""

    def __init__(self, node: Node, access: Access, lock: RLock, changed: Callable[[Node], None], released: Callable[[Node], None]) -> None:
        self._lock = lock
        self.node: NodeId = node.id
        self._file = node
        self._access = access
        self._changed = changed
        self._released = released
        self._open = True
        node.handles += 1
        if access.truncate and access.write and node.data:
            node.data.clear()
            changed(node)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        if not self._access.read:
            raise NotPermitted(self.node, "not opened for reading")
        with self._lock:
            return bytes(self._file.data[offset : offset + size])

    def write(self, offset: int, data: bytes) -> int:
        """Store `data` at `offset`, or at the end when opened for append."""
        if not self._access.write:
            raise NotPermitted(self.node, "not opened for writing")
        with self._lock:
            content = self._file.data
            start = len(content) if self._access.append else offset
            if start + len(data) > MAX_FILE:
                raise TooLarge(self.node, f"a file has at most {MAX_FILE} bytes")
            if start > len(content) and data:
                content.extend(bytes(start - len(content)))
            content[start : start + len(data)] = data
            self._changed(self._file)
        return len(data)

    def sync(self) -> None:
        """Return at once: nothing is more stable than memory here."""

    def close(self) -> None:
        """Release the handle."""
        with self._lock:
            if self._open:
                self._open = False
                self._file.handles -= 1
                self._released(self._file)

    def fileno(self) -> int:
        """Refuse: there is no descriptor."""
        raise Unsupported("descriptors", "the reference engine keeps files in memory")
