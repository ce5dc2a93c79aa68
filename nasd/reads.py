"""The read manifest of a workspace: which paths were opened for reading, coalesced, bounded, written in batches.

A batch names at most `LIMIT` paths and counts the rest, so that a `grep` over a million files costs one bounded record.
"""

from __future__ import annotations

import threading
from typing import Any

from nasd.paths import render_path

LIMIT = 1000


class Reads:
    """Accumulates reads. Any thread may call."""

    def __init__(self) -> None:
        """Start empty."""
        self._paths: dict[bytes, int] = {}
        self._beyond = 0
        self._lock = threading.Lock()

    def add(self, path: bytes) -> None:
        """Note one read of a path."""
        with self._lock:
            if path in self._paths or len(self._paths) < LIMIT:
                self._paths[path] = self._paths.get(path, 0) + 1
            else:
                self._beyond += 1

    def take(self) -> dict[str, Any] | None:
        """Return what was read since the last call as the body of a record, None when nothing was."""
        with self._lock:
            if not self._paths:
                return None
            paths, beyond = self._paths, self._beyond
            self._paths, self._beyond = {}, 0
        return {"paths": {render_path(path): times for path, times in sorted(paths.items())}, "beyond": beyond}
