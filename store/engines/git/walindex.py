"""Whether anything was committed since one last looked, in a fraction of a microsecond.

1. The head of the shared WAL index (48 bytes: a change counter, the number of frames, salts, a checksum) is rewritten by every
   commit of every process and connection before the commit returns (SQLite file format, "The WAL-Index File Format"). The same
   bytes again mean that nothing was committed in between; other bytes, torn ones included, only mean that one has to look.
2. Look at the head first and at the rows after it: what is then remembered is never ahead of the rows.
3. One mapping of a file serves the whole process and goes with the last database that uses it, after its connections: closing a
   descriptor of the file drops every lock SQLite holds on it in this process (fcntl(2)).
4. Where the file cannot be mapped, every look says that something may have changed.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from pathlib import Path

HEAD = 48

_Identity = tuple[int, int]


class _Mapping:
    """One mapped file and how many use it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.users = 0
        self.bytes = mmap.mmap(descriptor, HEAD, prot=mmap.PROT_READ)


_lock = threading.Lock()
_mappings: dict[_Identity, _Mapping] = {}


class WalIndex:
    """The head of one database's WAL index. Make it after the first connection, close it after the last."""

    def __init__(self, database: Path) -> None:
        """Map the index of `database`."""
        self._identity: _Identity | None = None
        self._bytes: mmap.mmap | None = None
        try:
            self._take(f"{database}-shm")
        except (OSError, ValueError):
            self._bytes = None  # rule 4: slower, and as right

    def head(self) -> bytes | None:
        """Return the head as it is now, None when it cannot be seen."""
        return self._bytes[:HEAD] if self._bytes is not None else None

    def close(self) -> None:
        """Let go of the mapping. Repeats do nothing."""
        identity, self._identity, self._bytes = self._identity, None, None
        if identity is None:
            return
        with _lock:
            mapping = _mappings[identity]
            mapping.users -= 1
            if mapping.users == 0:
                del _mappings[identity]
                mapping.bytes.close()
                os.close(mapping.descriptor)

    def _take(self, path: str) -> None:
        with _lock:
            found = os.stat(path)
            identity = (found.st_dev, found.st_ino)
            if identity not in _mappings:
                _mappings[identity] = _Mapping(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            mapping = _mappings[identity]
            mapping.users += 1
            self._identity, self._bytes = identity, mapping.bytes


def is_next(before: bytes | None, after: bytes | None) -> bool:
    """Tell whether exactly one commit lies between two heads; False when that cannot be told."""
    return before is not None and after is not None and _field(after, 8) == _field(before, 8) + 1


def count_frames(head: bytes) -> int:
    """Return how many pages the log holds."""
    return _field(head, 16)


def _field(head: bytes, start: int) -> int:
    return int.from_bytes(head[start : start + 4], sys.byteorder)
