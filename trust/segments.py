"""Segments: runs of old records that left the database for a sealed file of their own.

1. A segment begins where the one before ended and holds whole tiles of the tree, so that the tree needs nothing of it any more.
2. What is open is not sealed: neither an intent without outcome nor anything after it, nor the last tile.
3. The digest of a segment's file stands in the chain. A segment that was removed after its time leaves its place, its hashes and its tree.
4. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from trust.merkle import TILE

MOST_RECORDS = 64 * TILE
"""How many records one segment holds at most: few enough to leave the database without keeping others waiting."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed run of records, both ends included, with the hash before the first and of the last.

    `digest` is SHA-256 of the file; `removed` is when the file was given up, None as long as it is kept.
    """

    first: int
    last: int
    digest: bytes
    previous: bytes
    hash: bytes
    sealed: int
    removed: int | None = None

    @property
    def name(self) -> str:
        """Return the name of the segment's file."""
        return f"{self.first:012}-{self.last:012}.records"


def next_end(first: int, old: int, head: int, oldest_open: int | None) -> int | None:
    """Return the last record of a segment that begins at `first`, None when there is nothing to seal yet.

    `old` is the last record that is old enough, `oldest_open` the first intent without outcome.
    """
    limit = min(old, head - TILE, first - 1 + MOST_RECORDS, head if oldest_open is None else oldest_open - 1)
    last = limit // TILE * TILE
    return last if last >= first else None
