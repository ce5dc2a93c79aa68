"""Checkpoints kept where a database that is put back does not take them along: files beside it, folders elsewhere, witnesses.

1. `$NAS_HOME/checkpoints/` has a file for each, and each folder of the setting ``anchors`` one file with the last. A file appears whole.
2. Nothing here is believed but what this log's key signed. A checkpoint of another log in our place is told, not passed over.
3. Only such a comparison finds an old copy that was put back: the data directory itself looks sound.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from nasd.config import Settings
from trust.checkpoints import Checkpoint, Kept, judge
from trust.errors import NoteInvalid, Unknown
from trust.evidence import Evidence

_SUFFIX = ".checkpoint"
log = logging.getLogger("nasd.outside")


class Outside:
    """The checkpoints of one data directory that are kept outside of its database."""

    def __init__(self, settings: Settings) -> None:
        """Keep checkpoints where `settings` say."""
        self._folder = settings.checkpoints
        home = hashlib.sha256(os.fsencode(settings.home)).hexdigest()[:12]
        self._anchors = [folder / f"{settings.home.name}-{home}{_SUFFIX}" for folder in settings.anchor_folders]

    def keep(self, kept: Kept) -> list[str]:
        """Write a checkpoint to every place and return a line for each that could not be written."""
        failures = []
        for path in (self._folder / f"{kept.size:012}{_SUFFIX}", *self._anchors):
            try:
                _write(path, kept.render())
            except OSError as error:
                failures.append(f"{path}: {error.strerror or error}")
        return failures

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield where the last checkpoint of each place is, and what is there; a place that cannot be looked at is logged."""
        kept = sorted(self._folder.glob(f"*{_SUFFIX}"))
        for path in (*kept[-1:], *self._anchors):
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError as error:
                if path.parent.is_dir() and isinstance(error, FileNotFoundError):
                    continue  # nothing was kept there yet
                log.warning("the record is not compared with %s: %s", path, error.strerror or error)
            else:
                yield str(path), text

    def anchors(self) -> Sequence[Path]:
        """Return the files outside of the data directory."""
        return self._anchors

    def retire(self, name: str) -> None:
        """Put every checkpoint aside under a name: they are of a record that is not continued."""
        if self._folder.exists():
            self._folder.rename(self._folder.with_name(f"{self._folder.name}.{name}"))
        for path in self._anchors:
            if path.exists():
                path.rename(path.with_name(f"{path.name}.{name}"))


def compare(evidence: Evidence, notes: Iterator[tuple[str, str]]) -> tuple[list[tuple[str, Checkpoint]], list[str]]:
    """Return the checkpoints of this log in notes, each with where, and what they prove against the record as it is."""
    found, proofs = [], []
    size = evidence.head()[0]
    for where, note in notes:
        try:
            checkpoint = evidence.open(note)
        except NoteInvalid as error:
            proofs.append(
                f"{where} holds a checkpoint that is not of this log ({error.why}): its key was lost, or an old copy was put back"
            )
            continue
        found.append((where, checkpoint))
        if proof := judge(checkpoint, size, _root(evidence, checkpoint, size), where):
            proofs.append(proof)
    return found, proofs


def _root(evidence: Evidence, checkpoint: Checkpoint, size: int) -> bytes | None:
    """Return the root here at a checkpoint's size, None beyond the record; what was given up after its time is taken as it was signed."""
    if checkpoint.size > size:
        return None
    try:
        return evidence.root_at(checkpoint.size)
    except Unknown:
        return checkpoint.root


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    with draft.open("w", encoding="utf-8") as sink:
        sink.write(text)
        sink.flush()
        os.fsync(sink.fileno())
    draft.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
