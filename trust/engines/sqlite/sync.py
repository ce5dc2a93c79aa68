"""Group sync: many transactions, one wait for the disk.

1. A committed transaction takes a ticket with `written`. `wait(ticket)` returns once a sync that began after it has ended.
2. Whoever waits while no sync runs does it for all; who waits meanwhile shares the next one.
3. Nothing is locked while the disk works: writers go on.
4. `soon` promises a sync within the lazy time, by a thread that sleeps until there is something to do.
5. After a failed sync nothing is promised any more: the kernel may have dropped the pages, so a later success would be a lie. Everyone gets
   `RecorderUnavailable` until the state is opened again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from trust.errors import RecorderUnavailable


class GroupSync:
    """Counts what was written and what is on stable storage."""

    def __init__(self, sync: Callable[[], None], lazy_seconds: float) -> None:
        self._sync = sync
        self._lazy_seconds = lazy_seconds
        self._changed = threading.Condition()
        self._written = 0
        self._synced = 0
        self._running = False
        self._failure: OSError | None = None
        self._lazy: threading.Thread | None = None
        self._wake = threading.Event()
        self._stop = threading.Event()

    def written(self) -> int:
        """Return the ticket of what was just committed."""
        with self._changed:
            self._written += 1
            return self._written

    def wait(self, ticket: int) -> None:
        """Return once everything up to the ticket is on stable storage. Raises `RecorderUnavailable`."""
        while self._take_turn(ticket):
            self._run()

    def flush(self) -> None:
        """Return once everything committed before the call is on stable storage. Raises `RecorderUnavailable`."""
        self.wait(self._written)

    def soon(self) -> None:
        """See to it that what is written is synced within the lazy time."""
        if self._lazy is None:
            self._start_lazy()
        self._wake.set()

    def close(self) -> None:
        """Sync what is left and end the thread. Repeats do nothing."""
        self._stop.set()
        self._wake.set()
        if self._lazy is not None:
            self._lazy.join()
        self.flush()

    def _take_turn(self, ticket: int) -> bool:
        """Wait until the ticket is served (False) or it is this thread's turn to sync (True)."""
        with self._changed:
            while self._synced < ticket and self._running and self._failure is None:
                self._changed.wait()
            if self._synced >= ticket:
                return False
            self._require_working()
            self._running = True
            return True

    def _require_working(self) -> None:
        if self._failure is not None:
            raise RecorderUnavailable("trust", f"an earlier sync failed: {self._failure}") from self._failure

    def _run(self) -> None:
        target, reached = self._written, self._synced
        failure: OSError | None = None
        try:
            self._sync()
            reached = target
        except OSError as error:
            failure = error
        finally:  # also when a signal ends the wait: whoever comes next takes the turn
            with self._changed:
                self._running = False
                self._failure = failure
                self._synced = reached
                self._changed.notify_all()
        self._require_working()

    def _start_lazy(self) -> None:
        with self._changed:
            if self._lazy is None:
                self._lazy = threading.Thread(target=self._sync_lazily, name="trust-sync", daemon=True)
                self._lazy.start()

    def _sync_lazily(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            self._stop.wait(self._lazy_seconds / 2)
            try:
                self.flush()
            except RecorderUnavailable:
                return  # kept in _failure: every later wait, flush and durable transaction raises it
