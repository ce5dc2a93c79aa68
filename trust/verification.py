"""Verifying the whole record: the chain, the tree over it, the segments it left for, and the checkpoints that were signed of it.

1. Every link and every hash is computed again, from the first record to the present head; the first that is wrong is named, and there the
   walk ends.
2. The tree is bound to the chain: each kept node is computed again from the records' hashes, and each checkpoint's root with it.
3. A segment that was given up after its time is passed over by its hashes and its part of the tree; the result says so.
4. What was cut off at the end only an anchor shows: a head or a signed checkpoint that was kept elsewhere.
5. It costs three hashes a record, and memory for a few thousand of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trust.chain import GENESIS, Row, Walked, walk
from trust.checkpoints import Checkpoint, Kept, read_checkpoint
from trust.errors import ChainBroken, NoteInvalid, RecorderUnavailable, Unknown
from trust.evidence import Evidence
from trust.merkle import TILE, TILE_LEVEL, Frontier, grow, leaf_hash, perfect_root
from trust.model import Verification
from trust.segments import Segment
from trust.signed import VerifierKey, parse_signed, verify_signed

_CHUNK = 4096
Anchor = tuple[int, str]
"""Number and hash of a record, kept elsewhere."""


class _Broken(Exception):
    """The record is wrong from a number on."""

    def __init__(self, sequence: int, why: str) -> None:
        super().__init__(why)
        self.sequence = sequence
        self.why = why


class RecordWalk:
    """One walk over the whole record."""

    def __init__(self, evidence: Evidence, anchor: Anchor | None, outside: Sequence[tuple[str, Checkpoint]]) -> None:
        """Walk the record of `evidence`; `outside` holds checkpoints that were kept elsewhere, each with where."""
        self._evidence = evidence
        self._anchor = anchor
        self._anchored = anchor is None or anchor == (0, GENESIS.hex())
        self._place = Walked(0, GENESIS)
        self._frontier = Frontier()
        self._tile: list[bytes] = []
        self._outside = outside
        self._watched: list[tuple[int, bytes, str]] = []
        self._given_up = 0
        self._vouched = 0
        self.broken = ""
        """Why the record itself is wrong, empty when it is not; an anchor that does not fit says nothing about it."""

    def run(self) -> Verification:
        """Walk and judge."""
        kept = list(self._evidence.checkpoints())
        last = self._evidence.head()[0]  # after the checkpoints: each of them is of records that were there
        try:
            self._watched = sorted([*self._signed(kept, last), *self._kept_elsewhere(last)])
            for segment in self._evidence.segments():
                self._pass_segment(segment)
            for rows in self._evidence.live_rows(self._place.sequence):
                self._take(rows)
            self._require(last)
        except _Broken as broken:
            self.broken = broken.why
            return self._result(broken.sequence, broken.why, "unknown: the chain is broken")
        return self._judge_ends()

    def _require(self, last: int) -> None:
        if self._place.sequence < last:
            raise _Broken(self._place.sequence + 1, f"record {self._place.sequence + 1} is missing")

    def _signed(self, kept: Iterable[Kept], last: int) -> Iterable[tuple[int, bytes, str]]:
        """Yield what the log's own checkpoints say."""
        for each in kept:
            found = _read(each, self._evidence.verifier)
            if found.size > last:
                raise _Broken(last + 1, f"the checkpoint of {found.size} records is signed, and there are {last}")
            yield found.size, found.root, "its signed checkpoint"

    def _kept_elsewhere(self, last: int) -> Iterable[tuple[int, bytes, str]]:
        return [(found.size, found.root, where) for where, found in self._outside if found.size <= last]

    def _pass_segment(self, segment: Segment) -> None:
        if segment.first != self._place.sequence + 1 or segment.previous != self._place.hash:
            raise _Broken(self._place.sequence + 1, f"the segment from record {segment.first} on does not follow the one before it")
        if segment.removed is not None:
            self._pass_given_up(segment)
            return
        try:
            self._take_all(segment)
            same = self._evidence.digest_of(segment) == segment.digest
        except RecorderUnavailable as error:
            raise _Broken(segment.first, f"the segment's file {segment.name} is missing: {error.why}") from error
        if (self._place.sequence, self._place.hash) != (segment.last, segment.hash):
            raise _Broken(self._place.sequence + 1, f"the segment's file {segment.name} does not end with record {segment.last}")
        if not same:
            raise _Broken(segment.first, f"the segment's file {segment.name} is not the one that was sealed")

    def _take_all(self, segment: Segment) -> None:
        """Take the records of a segment's file; what is no record is named after those before it."""
        rows: list[Row] = []
        try:
            for row in self._evidence.rows_of(segment):
                rows.append(row)
                if len(rows) == _CHUNK:
                    self._take(rows)
                    rows = []
        except ChainBroken as error:
            self._take(rows)
            raise _Broken(self._place.sequence + 1, error.why) from error
        self._take(rows)

    def _pass_given_up(self, segment: Segment) -> None:
        try:
            for root in self._evidence.tile_roots(segment):
                self._frontier.add_subtree(root, TILE_LEVEL)
                self._check_roots(self._frontier.size, [])
        except Unknown as error:
            raise _Broken(segment.first, f"the tree over the removed records {segment.first} to {segment.last} is incomplete") from error
        self._place = Walked(segment.last, segment.hash)
        self._given_up = segment.last

    def _take(self, rows: Sequence[Row]) -> None:
        start = self._place
        self._place = walk(rows, start)
        good = rows[: self._place.sequence - start.sequence]
        if self._anchor is not None and not self._anchored:
            self._anchored = any((row[0], row[10].hex()) == self._anchor for row in good)
        self._tile += [leaf_hash(row[10]) for row in good]
        while len(self._tile) >= TILE:
            self._complete(self._tile[:TILE])
            self._tile = self._tile[TILE:]
        self._check_roots(self._frontier.size + len(self._tile), self._tile)
        if self._place.why:
            raise _Broken(self._place.sequence + 1, self._place.why)

    def _complete(self, leaves: list[bytes]) -> None:
        self._check_roots(self._frontier.size + TILE - 1, leaves)
        position, root = self._frontier.size // TILE, perfect_root(leaves)
        try:
            nodes = grow(position, root, self._evidence.node)
            sound = all(self._evidence.node(level, place) == found for level, place, found in nodes)
        except Unknown:
            sound = False
        if not sound:
            first = self._frontier.size + 1
            raise _Broken(first, f"the tree over records {first} to {first + TILE - 1} is not that of the records")
        self._frontier.add_subtree(root, TILE_LEVEL)
        self._check_roots(self._frontier.size, [])

    def _check_roots(self, reached: int, leaves: list[bytes]) -> None:
        """Check the watched roots of up to `reached` records; `leaves` are those that the frontier does not have yet."""
        while self._watched and self._watched[0][0] <= reached:
            size, root, where = self._watched.pop(0)
            if size <= self._given_up or size < self._frontier.size:
                continue  # inside of a removed segment: no root can be computed there
            grown = Frontier(self._frontier.size, self._frontier.roots)
            grown.add(leaves[: size - grown.size])
            if grown.root() != root:
                raise _Broken(self._vouched + 1, f"records {self._vouched + 1} to {size} are not those of {where}")
            self._vouched = size

    def _judge_ends(self) -> Verification:
        beyond = [(where, found) for where, found in self._outside if found.size > self._place.sequence]
        if beyond:
            where, found = beyond[0]
            why = f"the record ends before the {found.size} records of {where}"
            return self._result(self._place.sequence + 1, why, "records are missing")
        if self._anchor is None:
            told, where = max(((found.size, where) for where, found in self._outside), default=(0, ""))
            known = f"complete up to the {told} records of {where}; later records unknown"
            return self._result(None, "", known if told else "chain consistent, completeness unknown")
        number = self._anchor[0]
        if self._anchored:
            return self._result(None, "", f"complete up to the anchored record {number}; later records unknown")
        if number > self._place.sequence:
            return self._result(self._place.sequence + 1, f"the chain ends before the anchored record {number}", "records are missing")
        return self._result(number, f"record {number} is not the anchored one", "another chain than the anchored")

    def _result(self, first_bad: int | None, why: str, completeness: str) -> Verification:
        place = self._place
        if self._given_up:
            completeness += f"; records 1 to {self._given_up} were given up after their time, their hashes are here"
        good = place.sequence if first_bad is None else min(place.sequence, first_bad - 1)
        head = place.hash.hex() if good == place.sequence else ""
        return Verification(first_bad is None, good, first_bad, why, completeness, head)


def _read(kept: Kept, own: VerifierKey) -> Checkpoint:
    """Return what a checkpoint says; one of this log is signed by it, one of a former name of it was checked when it was signed."""
    try:
        signed = parse_signed(kept.note)
        found = read_checkpoint(signed)
        verified = verify_signed(signed, [own])
    except NoteInvalid as error:
        raise _Broken(kept.size, f"the checkpoint of {kept.size} records cannot be believed: {error.why}") from error
    if found.size != kept.size or (found.origin == own.name and not verified):
        raise _Broken(kept.size, f"the checkpoint of {kept.size} records is not the one that this log signed")
    return found
