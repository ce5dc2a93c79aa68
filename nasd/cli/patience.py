"""Telling a person that something takes longer than a second, on standard error.

1. What is done within a second says nothing. After that a terminal sees one line that moves, a pipe a line now and then.
2. The waiting thread only prints; what is waited for runs in the caller's.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_QUIET = 1.0
_TERMINAL_PERIOD = 0.2
_PIPE_PERIOD = 30.0


class Patience:
    """A line of progress. `report` has the shape that imports, exports and the store call with."""

    def __init__(self, title: str, stream: TextIO) -> None:
        """Say `title` and how far it is, on `stream`."""
        self._title = title
        self._stream = stream
        self._progress = ""
        self._over = threading.Event()
        self._spoke = False

    def report(self, stage: str, done: int, total: int) -> None:
        """Note how far it is; `total` is 0 when unknown."""
        self._progress = f": {stage} {done}" + (f" of {total}" if total else "")

    def keep(self) -> None:
        """Print until it is over."""
        moving = self._stream.isatty()
        if self._over.wait(_QUIET):
            return
        while True:
            self._spoke = moving
            print(
                f"\r\x1b[K{self._title}{self._progress}" if moving else f"{self._title}{self._progress}",
                end="" if moving else "\n",
                file=self._stream,
            )
            self._stream.flush()
            if self._over.wait(_TERMINAL_PERIOD if moving else _PIPE_PERIOD):
                return

    def finish(self) -> None:
        """End, and leave no half line behind."""
        self._over.set()
        if self._spoke:
            print("\r\x1b[K", end="", file=self._stream, flush=True)


@contextmanager
def patience(title: str) -> Iterator[Patience]:
    """Keep a person informed while the block runs."""
    told = Patience(title, sys.stderr)
    thread = threading.Thread(target=told.keep, name="patience", daemon=True)
    thread.start()
    try:
        yield told
    finally:
        told.finish()
        thread.join()
