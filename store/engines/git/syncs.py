"""Waiting for the disk together: one sync serves everybody who asked before it began."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Syncs:
    """Syncs of one thing, asked for by several threads."""

    def __init__(self) -> None:
        """Start with nothing under way."""
        self._turn = threading.Lock()
        self._begun = 0
        self._ended = 0

    def wait(self, sync: Callable[[], None]) -> None:
        """Return once a `sync` that began after this call has ended, done here or by another thread."""
        wanted = self._begun + 1
        with self._turn:
            if self._ended >= wanted:
                return
            self._begun += 1
            sync()
            self._ended = self._begun
