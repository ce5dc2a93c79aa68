"""Telling the kernel to begin writing a long file while it still comes in, so that the sync at the end finds little left to do.

1. It is a hint: nothing is promised before the sync, and what fails here fails there again.
2. Linux writes back after seconds by itself; a gibibyte is in before that, and its sync would wait for all of it.
"""

from __future__ import annotations

import ctypes

STEP = 8 << 20
"""Bytes between two hints."""

_BEGIN = 2
_LIBC = ctypes.CDLL(None)
_LIBC.sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


class Writeback:
    """The hints for one file that is written from its beginning to its end."""

    def __init__(self, descriptor: int) -> None:
        """Watch a file that is empty."""
        self._descriptor = descriptor
        self._begun = 0

    def note(self, end: int) -> None:
        """Take notice that everything up to `end` was written."""
        if end - self._begun >= STEP:
            _LIBC.sync_file_range(self._descriptor, self._begun, end - self._begun, _BEGIN)
            self._begun = end
