"""One verification of an export, from the first record to the last.

1. The walk goes through every line once. It stops at the first record that breaks the chain; what records mean is judged as far as it went.
2. The tree is built of the same hashes the chain is made of, and compared wherever a checkpoint was signed: chain and tree cannot differ.
3. What was given up after its time is passed over by its tree; the checkpoints around it bind that.
4. The verifier's own memory (the last checkpoint it saw) and witnesses are what finds a record that was cut off or put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verifier.export import BadExport, Export, Piece
from verifier.meaning import Meaning
from verifier.notes import BadNote, Checkpoint, Key, open_note
from verifier.records import BadRecord, read_records
from verifier.report import Report
from verifier.tree import Tree

_TILE = 256
_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Pins:
    """What the verifier knows from elsewhere: keys, how many witnesses are enough, and what it saw last time (origin, size, root)."""

    logs: tuple[Key, ...]
    witnesses: tuple[Key, ...] = ()
    quorum: int = 0
    most_age: int | None = None
    seen: tuple[str, int, bytes] | None = None
    skew: int = 300
    orphan_age: int = 86400


class Verification:
    """One walk through an export."""

    def __init__(self, export: Export, pins: Pins, now: int) -> None:
        self._export = export
        self._pins = pins
        self._now = now
        self.report = Report()
        self.last: Checkpoint | None = None
        """The last checkpoint that the log signed, once `run` was."""
        self._tree = Tree()
        self._leaves: list[bytes] = []
        self._watched: list[tuple[int, bytes, str, str]] = []
        self._meaning = Meaning(pins.skew, export.first == 1)
        self._hash = export.previous

    def run(self) -> Report:
        """Walk and return what was found. Raises `BadExport` for what cannot be walked at all."""
        self._tree = self._start()
        self._check_files()
        checkpoints = self._read_checkpoints()
        self._watch(checkpoints)
        self._walk()
        self._judge_witnesses(checkpoints)
        self._judge_orphans()
        return self.report

    def _start(self) -> Tree:
        try:
            return Tree(self._export.first - 1, self._export.peaks)
        except ValueError as error:
            raise BadExport(f"the manifest's beginning: {error}") from error

    def _check_files(self) -> None:
        files = dict(self._export.files) | {piece.file: piece.sha256 for piece in self._export.pieces if not piece.tiles}
        for name, digest in files.items():
            try:
                if self._export.digest(name) != digest:
                    self.report.complain("files", f"{name} was changed")
            except BadExport as error:
                self.report.complain("files", str(error))

    def _read_checkpoints(self) -> list[Checkpoint]:
        """Return what the log signed, in order of size."""
        found = []
        for note in self._export.notes():
            try:
                checkpoint = open_note(note, (*self._pins.logs, *self._pins.witnesses))
            except BadNote as error:
                self.report.complain("signatures", str(error))
                continue
            if any(key in self._pins.logs and key.name == checkpoint.origin for key, _ in checkpoint.signers):
                found.append(checkpoint)
        found.sort(key=lambda checkpoint: checkpoint.size)
        if not found:
            self.report.complain("signatures", "no checkpoint is signed by a known key of the log")
            return found
        self.last = found[-1]
        self.report.origin = self.last.origin
        if self.last.size != self._export.last:
            why = f"the last signed checkpoint has {self.last.size} records, the export ends with {self._export.last}"
            self.report.complain("signatures", why, min(self.last.size, self._export.last) + 1)
        return found

    def _watch(self, checkpoints: Sequence[Checkpoint]) -> None:
        self._watched = [(found.size, found.root, "tree", "its signed checkpoint") for found in checkpoints]
        if self._pins.seen is None:
            self.report.skipped["memory"] = "nothing was seen before: name a file with --state"
        else:
            origin, size, root = self._pins.seen
            if self.report.origin and origin != self.report.origin:
                self.report.complain("memory", f"this is another log than {origin}, which was seen before")
            if size > self._export.last:
                why = f"{size} records were seen before, and there are {self._export.last}: some were lost, or an old copy was put back"
                self.report.complain("memory", why, self._export.last + 1)
            self._watched.append((size, root, "memory", "what was seen before"))
        self._watched.sort()

    def _walk(self) -> None:
        sequence = self._export.first
        for piece in self._export.pieces:
            if piece.first != sequence:
                self.report.complain("chain", f"records {sequence} to {piece.first - 1} are in no piece", sequence)
                return
            try:
                if not (self._pass_over(piece) if piece.tiles else self._read(piece)):
                    return
            except BadExport as error:
                self.report.complain("chain", f"records {piece.first} to {piece.last} are missing: {error}", piece.first)
                return
            sequence = piece.last + 1
        if sequence != self._export.last + 1:
            self.report.complain("chain", f"records {sequence} to {self._export.last} are in no piece", sequence)

    def _pass_over(self, piece: Piece) -> bool:
        try:
            for tile in piece.tiles:
                self._tree.take_subtree(tile, _TILE)
        except ValueError as error:
            raise BadExport(str(error)) from error
        if self._tree.size != piece.last:
            raise BadExport("the tree over what was given up has another size")
        self._hash = piece.hash
        self._meaning.whole = False
        self._watched = [watched for watched in self._watched if watched[0] >= piece.last]
        self.report.records = piece.last
        self.report.notes.append(f"records {piece.first} to {piece.last} were given up after their time; only their tree is here")
        return self._compare()

    def _read(self, piece: Piece) -> bool:
        """Read the lines of a piece and tell whether the walk can go on."""
        sequence, next_watched, read, leaves = piece.first - 1, self._next_watched(), self._meaning.read, self._leaves
        try:
            for record in read_records(self._export.lines(piece), piece.first, self._hash):
                sequence, self._hash = record.sequence, record.hash
                leaves.append(record.hash)
                for check, why in read(record):
                    self.report.complain(check, why, sequence)
                if sequence == next_watched or len(leaves) == _BATCH:
                    if not self._compare():
                        return False
                    next_watched, leaves = self._next_watched(), self._leaves
        except BadRecord as bad:
            self._compare()
            self.report.complain(bad.check, bad.why, bad.sequence)
            return False
        if not self._compare():
            return False
        if sequence != piece.last:
            self.report.complain("chain", f"{piece.file} ends before record {piece.last}", sequence + 1)
        return sequence == piece.last

    def _next_watched(self) -> int:
        return self._watched[0][0] if self._watched else 0

    def _compare(self) -> bool:
        """Take what was read into the tree, and tell whether its root is the one that was signed or seen at this size."""
        self._tree.take_entries(self._leaves)
        self._leaves = []
        self.report.records, self.report.head = self._tree.size, self._hash.hex()
        while self._watched and self._watched[0][0] < self._tree.size:
            size, _, check, whose = self._watched.pop(0)
            if size >= self._export.first:
                self.report.complain(check, f"the root over {size} records, {whose}, could not be looked at")
            else:
                self.report.notes.append(f"{whose} of {size} records is before the first record here")
        while self._watched and self._watched[0][0] == self._tree.size:
            size, root, check, whose = self._watched.pop(0)
            if self._tree.root() != root:
                self.report.complain(check, f"the first {size} records are not those of {whose}", size)
                return False
        return True

    def _judge_witnesses(self, checkpoints: Sequence[Checkpoint]) -> None:
        pins = self._pins
        if not pins.quorum:
            self.report.skipped["witnesses"] = "no witness is known: name their keys with --witness"
            return
        for found in reversed(checkpoints):
            times = {key.name: time for key, time in found.signers if key in pins.witnesses and time is not None}
            if len(times) >= pins.quorum:
                newest = max(times.values())
                if pins.most_age is not None and newest < self._now - pins.most_age:
                    self.report.complain("witnesses", f"the last cosignature is {self._now - newest} s old")
                if found.size < self._export.last:
                    self.report.notes.append(f"records {found.size + 1} to {self._export.last} are not cosigned yet")
                return
        self.report.complain("witnesses", f"no checkpoint is cosigned by {pins.quorum} of the known witnesses")

    def _judge_orphans(self) -> None:
        for intent in self._meaning.orphans(self._pins.orphan_age):
            self.report.complain("intents", f"{intent.kind} was announced, and what came of it was never told", intent.sequence)
        young = len(self._meaning.open) - len(self._meaning.orphans(self._pins.orphan_age))
        if young:
            self.report.notes.append(f"{young} acts are under way")
