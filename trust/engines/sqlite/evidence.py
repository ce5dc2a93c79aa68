"""What makes the chain checkable by others, as rows: the tree over it, its checkpoints, its segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from trust.checkpoints import Kept
from trust.engines.sqlite.database import Database
from trust.errors import ChainBroken, Unknown
from trust.segments import Segment

_SEGMENT = "SELECT first, last, digest, previous, hash, sealed, removed FROM segments"
_CHECKPOINT = "SELECT size, time, note FROM checkpoints"


class Tree:
    """See `trust.contract.TreeRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, nodes: Iterable[tuple[int, int, bytes]]) -> None:
        """See the contract."""
        self._database.change_many("INSERT OR IGNORE INTO tree VALUES(?, ?, ?)", nodes)

    def find(self, level: int, position: int) -> bytes:
        """See the contract."""
        rows = self._database.rows("SELECT hash FROM tree WHERE level = ? AND position = ?", (level, position))
        if not rows:
            raise Unknown(f"{level}/{position}", "no such node of the tree")
        return bytes(rows[0][0])

    def count(self, level: int) -> int:
        """See the contract."""
        return int(self._database.rows("SELECT coalesce(max(position) + 1, 0) FROM tree WHERE level = ?", (level,))[0][0])


class Checkpoints:
    """See `trust.contract.CheckpointRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, size: int, time: int, note: str) -> None:
        """See the contract."""
        self._database.change("INSERT OR IGNORE INTO checkpoints VALUES(?, ?, ?)", (size, time, note))

    def cosign(self, size: int, witness: str, line: str) -> None:
        """See the contract."""
        self._database.change("INSERT OR REPLACE INTO cosignatures VALUES(?, ?, ?)", (size, witness, line))

    def after(self, size: int, limit: int) -> Sequence[Kept]:
        """See the contract."""
        return [self._kept(row) for row in self._database.rows(f"{_CHECKPOINT} WHERE size > ? ORDER BY size LIMIT ?", (size, limit))]

    def last(self, size: int | None = None) -> Kept:
        """See the contract."""
        where, bound = ("", ()) if size is None else (" WHERE size <= ?", (size,))
        return self._one(f"{_CHECKPOINT}{where} ORDER BY size DESC LIMIT 1", bound)

    def covering(self, size: int) -> Kept:
        """See the contract."""
        return self._one(f"{_CHECKPOINT} WHERE size >= ? ORDER BY size LIMIT 1", (size,))

    def witnessed(self, witness: str) -> int:
        """See the contract."""
        return int(self._database.rows("SELECT coalesce(max(size), 0) FROM cosignatures WHERE witness = ?", (witness,))[0][0])

    def _one(self, statement: str, bindings: tuple[Any, ...]) -> Kept:
        rows = self._database.rows(statement, bindings)
        if not rows:
            raise Unknown("checkpoint", "there is no such checkpoint yet")
        return self._kept(rows[0])

    def _kept(self, row: tuple[Any, ...]) -> Kept:
        size, time, note = row
        lines = self._database.rows("SELECT witness, line FROM cosignatures WHERE size = ? ORDER BY witness", (size,))
        return Kept(size, time, note, dict(lines))


class Segments:
    """See `trust.contract.SegmentRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, segment: Segment, runs: Iterable[str]) -> None:
        """See the contract."""
        values = (segment.first, segment.last, segment.digest, segment.previous, segment.hash, segment.sealed, segment.removed)
        try:
            self._database.change("INSERT INTO segments VALUES(?, ?, ?, ?, ?, ?, ?)", values)
        except apsw.ConstraintError as error:
            raise ChainBroken("segment", str(error)) from error
        self._database.change_many("INSERT OR IGNORE INTO sealed_runs VALUES(?, ?)", [(run, segment.first) for run in runs])

    def all(self) -> Sequence[Segment]:
        """See the contract."""
        return [Segment(*row) for row in self._database.rows(f"{_SEGMENT} ORDER BY first")]

    def of_run(self, run: str) -> Sequence[Segment]:
        """See the contract."""
        return [
            Segment(*row) for row in self._database.rows(f"{_SEGMENT} JOIN sealed_runs USING (first) WHERE run = ? ORDER BY first", (run,))
        ]

    def replace(self, first: int, digest: bytes) -> None:
        """See the contract."""
        self._database.change("UPDATE segments SET digest = ? WHERE first = ?", (digest, first))

    def give_up(self, first: int, now: int) -> None:
        """See the contract."""
        self._database.change("UPDATE segments SET removed = ? WHERE first = ? AND removed IS NULL", (now, first))
