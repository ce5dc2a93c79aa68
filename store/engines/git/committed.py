"""Open files that nobody can change: of commits, and of bytes that are staged."""

from __future__ import annotations

import os

from store.engines.git.content import ContentCache, disk_errors
from store.errors import NotPermitted
from store.model import NodeId

_NONE = -1


class SmallHandle:
    """An open file of a commit whose content is in memory."""

    def __init__(self, node: NodeId, content: bytes, oid: bytes, cache: ContentCache) -> None:
        """Read `content`; `cache` opens it as a file, by its identity, for whoever wants a descriptor."""
        self.node: NodeId = node
        self._content = content
        self._oid = oid
        self._cache = cache
        self._descriptor = _NONE

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        return self._content[offset : offset + size]

    def write(self, offset: int, data: bytes) -> int:
        """Raise `NotPermitted`: a commit never changes."""
        raise NotPermitted(self.node, "a commit never changes")

    def sync(self) -> None:
        """Return at once: what was committed is durable."""

    def close(self) -> None:
        """Release the descriptor, if anybody wanted one. Repeats do nothing."""
        descriptor, self._descriptor = self._descriptor, _NONE
        if descriptor != _NONE:
            os.close(descriptor)

    def fileno(self) -> int:
        """Return a descriptor; the handle owns it."""
        if self._descriptor == _NONE:
            self._descriptor = self._cache.open(self._oid)
        return self._descriptor


class CommittedHandle:
    """An open file of a commit: a descriptor that never changes."""

    def __init__(self, node: NodeId, descriptor: int) -> None:
        """Take over the descriptor."""
        self.node: NodeId = node
        self._descriptor = descriptor
        self._closed = False

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        with disk_errors(self.node):
            return os.pread(self._descriptor, size, offset)

    def write(self, offset: int, data: bytes) -> int:
        """Raise `NotPermitted`: a commit never changes."""
        raise NotPermitted(self.node, "a commit never changes")

    def sync(self) -> None:
        """Return at once: what was committed is durable."""

    def close(self) -> None:
        """Release the descriptor. Repeats do nothing."""
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)

    def fileno(self) -> int:
        """Return the descriptor; the handle owns it."""
        return self._descriptor
