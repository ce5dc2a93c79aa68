"""A fence around one working layer: many may change it at once, or one may freeze it.

1. A change holds the fence shared for the length of one call; a commit holds it alone while it compares and writes.
   Data written under the fence is therefore in a commit whole or not at all.
2. Across processes it is a lock on an open file description: the kernel drops it when its process dies, however it dies.
3. Within a process the first of several changes takes the lock and the last one drops it; while somebody waits to be alone,
   no further change enters, so a stream of writers starves nobody.
4. Order of locks everywhere: fence, then the layer's lock, then the database.
5. Threads may share a fence; a thread never enters one it is in already.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_REQUEST = "hhqqi4x"
_SHARED = struct.pack(_REQUEST, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
_ALONE = struct.pack(_REQUEST, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
_NONE = struct.pack(_REQUEST, fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)
_SET_AND_WAIT: int = getattr(fcntl, "F_OFD_SETLKW", 38)
_TURN = 64


class Fence:
    """The fence of one working layer, as one process holds it."""

    def __init__(self, path: Path) -> None:
        """Use the lock file at `path`, making it when it is missing."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._state = threading.Condition()
        self._inside = 0
        self._entered = 0
        self._waiting = 0
        self._shared = Shared(self)

    def shared(self) -> Shared:
        """Run a block while nobody freezes the layer."""
        return self._shared

    def enter(self) -> None:
        """Wait until nobody freezes the layer, and keep it so until `leave`: what `shared` is made of."""
        with self._state:
            if not self._may_enter():
                self._state.wait_for(self._may_enter)
            if self._inside == 0:
                self._lock(_SHARED)
                self._entered = 0
            self._inside += 1
            self._entered += 1

    def leave(self) -> None:
        """End what `enter` began."""
        with self._state:
            self._inside -= 1
            if self._inside == 0:
                self._entered = 0
                self._lock(_NONE)
                self._state.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run the block while nobody changes the layer, in any process."""
        with self._state:
            self._waiting += 1
            try:
                self._state.wait_for(lambda: self._inside == 0)
                self._inside = -1
            finally:
                self._waiting -= 1
        try:
            self._lock(_ALONE)
            yield
        finally:
            with self._state:
                self._lock(_NONE)
                self._inside = 0
                self._state.notify_all()

    def drain(self) -> None:
        """Return once every change that was under way when this was called has ended."""
        with self.alone():
            return

    def close(self) -> None:
        """Release the lock file."""
        os.close(self._descriptor)
        self._descriptor = -1

    def _may_enter(self) -> bool:
        return self._inside == 0 if self._waiting or self._entered >= _TURN else self._inside >= 0

    def _lock(self, request: bytes) -> None:
        fcntl.fcntl(self._descriptor, _SET_AND_WAIT, request)


class Shared:
    """A block under a shared fence; one object serves every block."""

    __slots__ = ("_fence",)

    def __init__(self, fence: Fence) -> None:
        """Prepare for blocks under a fence."""
        self._fence = fence

    def __enter__(self) -> None:
        self._fence.enter()

    def __exit__(self, kind: object, failure: object, trace: object) -> None:
        self._fence.leave()
