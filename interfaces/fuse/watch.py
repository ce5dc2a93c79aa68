"""What a mount looks after between two answers: changes by other doors, and whether its lease still holds.

1. `tick` runs in the thread that answers the kernel and costs a microsecond when nothing happened.
2. Once the lease has ended, everything the kernel cached is dropped, so that the next operation of any kind comes to us
   and is refused: path walks, reads of open files and faults of mappings included.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Protocol

from interfaces.faults import Fault
from interfaces.fuse.coherence import Notice
from interfaces.fuse.operations import Operations

logger = logging.getLogger(__name__)


class Tell(Protocol):
    """How notices get on their way to the kernel."""

    def __call__(self, notices: Iterable[Notice]) -> None:
        """Queue notices."""


class Watch:
    """The regular look at workspace and lease."""

    def __init__(self, operations: Operations, tell: Tell, check_seconds: float) -> None:
        """Look through `operations`, announce through `tell`."""
        self._operations = operations
        self._tell = tell
        self._check_seconds = check_seconds
        self._due = 0.0
        self._refused = False

    def tick(self) -> None:
        """Announce what changed, and check the lease when it is time."""
        try:
            self._tell(self._operations.changes())
            if time.monotonic() >= self._due:
                self._operations.check()
                self._due = time.monotonic() + self._check_seconds
            self._refused = False
        except Fault as fault:
            self._refuse(fault.message)
        except Exception as error:  # A defect here must not end the mount, nor leave caches that may be wrong.
            logger.error("looking for changes failed", exc_info=error)
            self._refuse("a defect")

    def _refuse(self, why: str) -> None:
        if not self._refused:
            self._refused = True
            logger.info("everything cached is dropped: %s", why)
            self._tell(self._operations.everything())
