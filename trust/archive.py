"""The folder of sealed segments: one file each, written whole or not at all.

1. A file is complete and on stable storage when `write` returns, in the place of one of the same name that nobody counts on.
2. Reading gives the records in order and stops at the first line that is none; who reads checks the chain.
3. Any thread and process; one writes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trust.chain import Row
from trust.errors import RecorderUnavailable
from trust.lines import parse_lines, render_lines
from trust.segments import Segment


class Archive:
    """Segments in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, segment: Segment) -> Path:
        """Return where a segment's file is."""
        return self._folder / segment.name

    def write(self, name: str, rows: Iterable[Row]) -> bytes:
        """Write the file of a segment and return its digest. Raises `RecorderUnavailable`."""
        content = render_lines(rows)
        draft = self._folder / f".{name}"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as sink:
                sink.write(content)
                sink.flush()
                os.fsync(sink.fileno())
            draft.replace(self._folder / name)
            self._sync_folder()
        except OSError as error:
            raise RecorderUnavailable(self._folder / name, error.strerror or str(error)) from error
        return hashlib.sha256(content).digest()

    def read(self, segment: Segment) -> Iterator[Row]:
        """Yield the records of a segment. Raises `RecorderUnavailable` when the file is gone, `ChainBroken` at what is no record."""
        try:
            with self.path(segment).open("rb") as source:
                yield from parse_lines(source, segment.previous, segment.first - 1)
        except OSError as error:
            raise RecorderUnavailable(self.path(segment), error.strerror or str(error)) from error

    def digest(self, segment: Segment) -> bytes:
        """Return the digest of a segment's file as it is. Raises `RecorderUnavailable` when it is gone."""
        try:
            with self.path(segment).open("rb") as source:
                return hashlib.file_digest(source, "sha256").digest()
        except OSError as error:
            raise RecorderUnavailable(self.path(segment), error.strerror or str(error)) from error

    def remove(self, segment: Segment) -> None:
        """Remove a segment's file; one that is gone stays gone. Raises `RecorderUnavailable`."""
        try:
            self.path(segment).unlink(missing_ok=True)
            if self._folder.exists():
                self._sync_folder()
        except OSError as error:
            raise RecorderUnavailable(self.path(segment), error.strerror or str(error)) from error

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
