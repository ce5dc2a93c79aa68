"""Moving finished transactions from the log into the database file, so that no caller waits for it.

1. A checkpoint syncs two files and so takes as long as hundreds of transactions. It runs in a thread of its own, on a connection
   of its own, when the log has grown by `PAGES` pages; transactions go on meanwhile.
2. The log starts over only when all of it was moved, which writers that never pause would put off for good. So when the log holds
   `PATIENCE` times as much, a second pass moves what came during the first while the writers of this process wait: little is left.
3. A checkpoint that fails leaves everything in the log, which is as good a place; the next one tries again.
4. Should the thread fall behind, SQLite itself makes a checkpoint at `BACKSTOP_PAGES`, within a transaction.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

import apsw

from store.engines.git.steps import step

PAGES = 4_000
PATIENCE = 3
BACKSTOP_PAGES = 8 * PAGES

_RETRIED = (apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError)


class Checkpoints:
    """The checkpoints one process makes of one database."""

    def __init__(self, connection: apsw.Connection, writing: AbstractContextManager[object]) -> None:
        """Use `connection` for nothing else; who holds `writing` keeps this process from beginning transactions."""
        self._connection = connection
        self._writing = writing
        self._running = threading.Lock()
        self._thread: threading.Thread | None = None
        self._frames = 0
        self._due = PAGES

    def note(self, frames: int) -> None:
        """Take notice of how many pages the log holds after a transaction. The caller holds `writing`."""
        if frames < self._frames:
            self._due = PAGES
        self._frames = frames
        if frames >= self._due and (self._thread is None or not self._thread.is_alive()):
            self._due = frames + PAGES
            self._thread = threading.Thread(target=self.run, name="checkpoint", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Move what the log holds."""
        with self._running:
            if self._move() >= PATIENCE * PAGES:
                with self._writing:
                    self._move()

    def close(self) -> None:
        """Return once no checkpoint runs, and release the connection. No transaction may follow."""
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def _move(self) -> int:
        """Make one pass and return how many pages the log held."""
        step("database: checkpoint")
        try:
            held, _ = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except _RETRIED:
            return 0
        return held
