"""Telling the kernel what to drop, in a thread of its own.

1. A notice blocks in the kernel while an operation on the same directory or page is under way, which only the answering
   thread can end. So that thread hands notices over and never waits for one.
2. What the kernel does not hold (any more) is not an error. A connection that is gone ends the thread's work, not the process.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Iterable
from queue import SimpleQueue
from typing import Protocol

from interfaces.fuse.coherence import Notice

logger = logging.getLogger(__name__)

_GONE = frozenset((errno.ENOTCONN, errno.ENODEV, errno.EBADF))
_UNKNOWN_TO_KERNEL = frozenset((errno.ENOENT, errno.ENOTDIR))


class Announce(Protocol):
    """How a channel tells the kernel."""

    def __call__(self, notice: Notice) -> None:
        """Make the kernel drop one thing. Raises OSError."""


class Announcer:
    """The thread that tells the kernel."""

    def __init__(self, announce: Announce) -> None:
        """Prepare to tell through `announce`."""
        self._announce = announce
        self._queue: SimpleQueue[Notice | None] = SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="fuse-notices", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def tell(self, notices: Iterable[Notice]) -> None:
        """Queue notices, in order."""
        for notice in notices:
            self._queue.put(notice)

    def stop(self, seconds: float) -> bool:
        """End without telling what is still queued, and return whether the thread ended within `seconds`."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (notice := self._queue.get()) is not None and not self._stopping:
            if not self._tell(notice):
                return

    def _tell(self, notice: Notice) -> bool:
        try:
            self._announce(notice)
        except OSError as error:
            if error.errno in _GONE:
                return False
            if error.errno not in _UNKNOWN_TO_KERNEL:
                logger.error("the kernel did not take %s", notice, exc_info=error)
        return True
