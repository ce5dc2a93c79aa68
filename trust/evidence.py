"""What lets others check the record: the tree over it, signed checkpoints, proofs; and what leaves it without breaking it.

1. The tree grows in the transaction of the records it is over. One that lacks tiles (a database of an earlier release) is completed when it
   is opened.
2. A checkpoint is of records that are on stable storage: a head that a power cut takes back was never signed.
3. Sealed records stay part of the chain: `history` reads segments and database as one. What was given up after its time leaves its hashes.
4. Redaction takes a body away, everywhere it is kept here, and changes no hash. An open intent keeps its body: the next start may need it.
5. Nothing here records by itself: announcing and concluding is the composition's.
6. Any thread; several processes read, one seals and redacts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from trust.archive import Archive
from trust.chain import COMMITMENT_BYTES, GENESIS, SALT_BYTES, Row, commit_body
from trust.checkpoints import Checkpoint, Kept, open_checkpoint, sign_checkpoint
from trust.contract import Engine
from trust.errors import ChainBroken, Unknown
from trust.log_key import open_log_key, retire_log_key
from trust.merkle import TILE, TILE_LEVEL, grow, leaf_hash, perfect_root, prove_consistency, prove_inclusion, subtree_root
from trust.segments import Segment, next_end
from trust.signed import SigningKey, VerifierKey

_CHUNK = 5000


class Evidence:
    """The checkable side of the record in a folder."""

    def __init__(self, engine: Engine, folder: Path, entropy: Callable[[int], bytes]) -> None:
        self._engine = engine
        self._keys = folder / "keys"
        self._entropy = entropy
        self._archive = Archive(folder / "segments")
        if engine.tree.count(TILE_LEVEL) < engine.records.head()[0] // TILE:
            with engine.transaction():
                grow_tree(engine, engine.tree.count(TILE_LEVEL) * TILE, engine.records.head()[0])

    # checkpoints

    @cached_property
    def _opened_key(self) -> tuple[SigningKey, bool]:
        return open_log_key(self._keys, self._entropy)

    @property
    def verifier(self) -> VerifierKey:
        """Return the public key of the log; its name is the log's origin. Raises `RecorderUnavailable`, `NoteInvalid`."""
        return self._opened_key[0].verifier

    @property
    def key_is_fresh(self) -> bool:
        """Tell whether this process made the key of the log."""
        return self._opened_key[1]

    def renew_key(self) -> VerifierKey:
        """Put the key aside and return that of the log's next name: what was signed so far is another log's. Raises as `verifier`."""
        retire_log_key(self._keys)
        self.__dict__.pop("_opened_key", None)
        return self.verifier

    def checkpoint(self, now: int) -> Kept:
        """Sign the head as it is, keep it and return it; a head that was signed before stays as it is. Raises `Unknown` without records."""
        key = self._opened_key[0]
        self._engine.flush()
        with self._engine.transaction():
            size = self._engine.records.head()[0]
            if not size:
                raise Unknown("checkpoint", "there are no records yet")
            head = Checkpoint(key.verifier.name, size, self.root_at(size))
            self._engine.checkpoints.add(size, now, sign_checkpoint(head, key))
        return self._engine.checkpoints.last(size)

    def checkpoints(self, after: int = 0) -> Iterator[Kept]:
        """Yield the checkpoints of more than `after` records, in order."""
        while found := self._engine.checkpoints.after(after, _CHUNK):
            yield from found
            after = found[-1].size

    def last_checkpoint(self) -> Kept:
        """Return the largest checkpoint. Raises `Unknown` before the first."""
        return self._engine.checkpoints.last()

    def covering(self, sequence: int) -> Kept:
        """Return the first checkpoint that has a record. Raises `Unknown` when none has yet."""
        return self._engine.checkpoints.covering(sequence)

    def witnessed(self, witness: str) -> int:
        """Return the size of the largest checkpoint that a witness cosigned, 0 without one."""
        return self._engine.checkpoints.witnessed(witness)

    def cosign(self, size: int, witness: str, line: str) -> None:
        """Keep the signature line of a witness beside a checkpoint."""
        with self._engine.transaction(durable=False):
            self._engine.checkpoints.cosign(size, witness, line)

    def open(self, note: str) -> Checkpoint:
        """Return what a checkpoint of this log says. Raises `NoteInvalid` when this log did not sign it."""
        return open_checkpoint(note, self.verifier)

    # proofs

    def root_at(self, size: int) -> bytes:
        """Return the root over the first `size` records. Raises `Unknown` when there are fewer, or their hashes were given up."""
        self._require(size)
        return subtree_root(self._nodes(), 0, size)

    def prove_inclusion(self, sequence: int, size: int) -> list[bytes]:
        """Return the proof that a record is among the first `size`. Raises as `root_at`."""
        self._require(size)
        if not 0 < sequence <= size:
            raise Unknown(sequence, f"not among the first {size} records")
        return prove_inclusion(self._nodes(), sequence - 1, size)

    def prove_consistency(self, first: int, second: int) -> list[bytes]:
        """Return the proof that the first `first` records are the beginning of the first `second`. Raises as `root_at`."""
        self._require(second)
        return prove_consistency(self._nodes(), first, second)

    def peaks(self, size: int) -> list[bytes]:
        """Return the perfect subtrees that the tree of the first `size` records is made of, largest first. Raises as `root_at`."""
        self._require(size)
        nodes, found, start = self._nodes(), [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                found.append(nodes(level, start >> level))
                start += 1 << level
        return found

    def _require(self, size: int) -> None:
        last = self._engine.records.head()[0]
        if size > last:
            raise Unknown(size, f"there are {last} records")

    def _nodes(self) -> Callable[[int, int], bytes]:
        """Return what looks nodes up; the leaves of a tile are read once."""
        leaves: dict[int, list[bytes]] = {}

        def find(level: int, position: int) -> bytes:
            if level >= TILE_LEVEL:
                return self._engine.tree.find(level, position)
            start = position << level
            tile = start // TILE
            if tile not in leaves:
                leaves[tile] = [leaf_hash(digest) for digest in self._tile_hashes(tile)]
            return perfect_root(leaves[tile][start % TILE : start % TILE + (1 << level)])

        return find

    def _tile_hashes(self, tile: int) -> Sequence[bytes]:
        first, last = tile * TILE + 1, (tile + 1) * TILE
        if first >= self._engine.records.first():
            return self._engine.records.hashes(first, last)
        return [row[10] for row in self._segment_rows(self._holding(first)) if first <= row[0] <= last]

    # history, segments, redaction

    def segments(self) -> Sequence[Segment]:
        """Return the segments, oldest first."""
        return self._engine.segments.all()

    def file_of(self, segment: Segment) -> Path:
        """Return where a segment's file is, or was."""
        return self._archive.path(segment)

    def digest_of(self, segment: Segment) -> bytes:
        """Return the digest of a segment's file as it is. Raises `RecorderUnavailable` when it is gone."""
        return self._archive.digest(segment)

    def tile_roots(self, segment: Segment) -> Iterator[bytes]:
        """Yield the kept nodes over a segment's tiles. Raises `Unknown` when one is missing."""
        for position in range((segment.first - 1) // TILE, segment.last // TILE):
            yield self._engine.tree.find(TILE_LEVEL, position)

    def node(self, level: int, position: int) -> bytes:
        """Return a kept node of the tree. Raises `Unknown`."""
        return self._engine.tree.find(level, position)

    def head(self) -> tuple[int, bytes]:
        """Return number and hash of the last record; 0 and the genesis hash before the first."""
        return self._engine.records.head()

    def rows_of(self, segment: Segment) -> Iterator[Row]:
        """Yield the records of a sealed segment as they are in its file. Raises `RecorderUnavailable`, `ChainBroken`."""
        return self._archive.read(segment)

    def live_rows(self, after: int, until: int | None = None) -> Iterator[Sequence[Row]]:
        """Yield the records in the database after a number, up to another where it is given, in pieces."""
        while rows := self._engine.records.after(after, _CHUNK if until is None else min(_CHUNK, until - after)):
            yield rows
            after = rows[-1][0]

    def sealed_rows(self, after: int, kind: str | None = None, run: str | None = None) -> Iterator[Row]:
        """Yield the sealed records after a number, of a kind and run where asked for; what was given up is passed over."""
        if after >= self._engine.records.first() - 1:
            return
        for segment in self._engine.segments.all() if run is None else self._engine.segments.of_run(run):
            if segment.last > after and segment.removed is None:
                for row in self._archive.read(segment):
                    if row[0] > after and kind in (None, row[4]) and run in (None, row[6]):
                        yield row

    def policies(self) -> Sequence[tuple[str, str]]:
        """Return hash and text of every policy that was adopted: what the decisions in the record refer to."""
        return self._engine.policies.all()

    def find(self, sequence: int) -> Row:
        """Return a record, sealed or not. Raises `Unknown`."""
        if sequence >= self._engine.records.first():
            return self._engine.records.find(sequence)
        return next(row for row in self._segment_rows(self._holding(sequence)) if row[0] == sequence)

    def next_segment(self, older_than: int) -> tuple[int, int] | None:
        """Return first and last record of what can be sealed of the time before `older_than`, None when there is nothing."""
        segments = self._engine.segments.all()
        first = segments[-1].last + 1 if segments else 1
        intents = self._engine.records.open_intents()
        head, old = self._engine.records.head()[0], self._engine.records.last_before(older_than)
        last = next_end(first, old, head, intents[0][0] if intents else None)
        return None if last is None else (first, last)

    def seal(self, first: int, last: int, now: int) -> Segment:
        """Move records into a segment of their own and return it. Raises `RecorderUnavailable`, `ChainBroken`."""
        rows = self._engine.records.after(first - 1, last - first + 1)
        draft = Segment(first, last, b"", rows[0][9] if rows else GENESIS, rows[-1][10] if rows else GENESIS, now)
        segment = replace(draft, digest=self._archive.write(draft.name, rows))
        with self._engine.transaction():
            self._engine.segments.add(segment, {row[6] for row in rows})
            self._engine.records.remove(first, last)
        return segment

    def give_up(self, segment: Segment, now: int) -> None:
        """Remove the records of a segment for good; its hashes and its part of the tree stay. Raises `RecorderUnavailable`."""
        with self._engine.transaction():
            self._engine.segments.give_up(segment.first, now)
        self._archive.remove(segment)

    def check_redactable(self, sequence: int) -> None:
        """Return when a record's body can be taken away. Raises `Unknown`, `ChainBroken` when it cannot, and why."""
        row = self.find(sequence)
        if len(row[11]) not in (SALT_BYTES, COMMITMENT_BYTES):
            raise ChainBroken(sequence, "a record of the first release: its hash covers the body itself, so it cannot be redacted")
        if sequence in {open_row[0] for open_row in self._engine.records.open_intents()}:
            raise ChainBroken(sequence, "an intent without outcome: its body is needed until it is concluded")

    def redact(self, sequence: int) -> bytes:
        """Put the commitment in the place of a record's body, in the database or in its segment, and return it.

        Repeats do nothing. Raises as `check_redactable`, and `RecorderUnavailable`.
        """
        self.check_redactable(sequence)
        if sequence < self._engine.records.first():
            return self._redact_sealed(self._holding(sequence), sequence)
        row = self._engine.records.find(sequence)
        commitment = row[11] if len(row[11]) == COMMITMENT_BYTES else commit_body(row[11], row[8])
        if row[8]:
            with self._engine.transaction():
                self._engine.records.redact(sequence, commitment)
        self._engine.records.forget()
        return commitment

    def _redact_sealed(self, segment: Segment, sequence: int) -> bytes:
        rows, commitment = [], b""
        for row in self._segment_rows(segment):
            if row[0] == sequence:
                commitment = commit_body(row[11], row[8]) if row[8] else row[11]
                row = (*row[:8], "", *row[9:11], commitment)
            rows.append(row)
        digest = self._archive.write(segment.name, rows)
        with self._engine.transaction():
            self._engine.segments.replace(segment.first, digest)
        self._engine.records.forget()  # the pages of the database from which it was sealed
        return commitment

    def _holding(self, sequence: int) -> Segment:
        for segment in self._engine.segments.all():
            if segment.first <= sequence <= segment.last:
                return segment
        raise Unknown(sequence, "no such record")

    def _segment_rows(self, segment: Segment) -> Iterator[Row]:
        if segment.removed is not None:
            raise Unknown(segment.first, f"records {segment.first} to {segment.last} were given up after their time")
        return self._archive.read(segment)


def grow_tree(engine: Engine, before: int, after: int) -> None:
    """Store the nodes that records beyond the first `before` completed, up to `after`; inside a transaction."""
    for position in range(before // TILE, after // TILE):
        hashes = engine.records.hashes(position * TILE + 1, (position + 1) * TILE)
        tile = perfect_root([leaf_hash(digest) for digest in hashes])
        engine.tree.add(grow(position, tile, engine.tree.find))
