"""What an engine promises: the rows of trust, in transactions that several processes may run at once.

1.  Writes happen inside `transaction`. It is atomic and serialised with every other, in all processes: what was read inside it is
    still so when it commits. Inside an open one of the same thread it joins that.
2.  When a durable transaction's block ends, its effect is on stable storage. One that is not durable is visible to all at once,
    survives the end of every process at once, and is on stable storage within `LAZY_SECONDS` or after the next durable one or `flush`.
3.  Waiting for the disk happens outside the transaction: others go on, and one sync serves all who wait.
4.  A block that raises leaves nothing behind.
5.  Reads outside of a transaction see what is committed, in any process; they wait for nobody.
6.  `epoch` grows with every `bump`; reading it costs microseconds.
7.  Rows go in and out as they are. The engine decides nothing: what may happen is decided above it, inside the transaction.
8.  Records are append-only: `append` takes the next sequence number and nothing else. Two things leave one, and never its hash: a body for
    its commitment, and a record for the segment that is stored before it goes.
9.  What cannot be stored (disk full, read-only, out of reach) raises `RecorderUnavailable`, and nothing of the transaction remains.
10. Every method may be called from several threads. None calls back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from trust.budgets import Account
from trust.chain import Row
from trust.checkpoints import Kept
from trust.labels import Label
from trust.leases import Chain
from trust.model import (
    BudgetKind,
    Bypass,
    Digest,
    Document,
    Epoch,
    Gate,
    GateId,
    GateState,
    Labelled,
    Lease,
    LeaseId,
    Mark,
    Principal,
    RunId,
    Token,
    TokenId,
)
from trust.secret import Secret
from trust.segments import Segment

LAZY_SECONDS = 0.05
"""How long a transaction that is not durable may wait for stable storage."""


class PrincipalRows(Protocol):
    """Principals."""

    def add(self, principal: Principal) -> None:
        """Store a principal. Raises `Taken`."""

    def find(self, name: str) -> Principal:
        """Return a principal. Raises `Unknown`."""

    def all(self) -> Sequence[Principal]:
        """Return all principals, ordered by name."""

    def disable(self, name: str) -> None:
        """Mark a principal; repeats do nothing."""

    def set_attributes(self, name: str, attributes: Mapping[str, str]) -> None:
        """Replace the attributes of a principal."""


class TokenRows(Protocol):
    """Principals' own tokens, each with the hash of its secret."""

    def add(self, token: Token, digest: Secret) -> None:
        """Store a token. Raises `Taken`."""

    def find(self, token: TokenId) -> tuple[Token, Secret]:
        """Return a token with the hash of its secret. Raises `Unknown`."""

    def all(self, principal: str | None = None) -> Sequence[Token]:
        """Return tokens, oldest first."""

    def revoke(self, token: TokenId, now: int) -> None:
        """Mark a token; the first time stays."""


class LeaseRows(Protocol):
    """Leases with their chains and budgets."""

    def add(self, lease: Lease, chain: Chain) -> None:
        """Store a lease with its chain and its limits. Raises `Taken`."""

    def find(self, lease: LeaseId) -> tuple[Lease, Chain]:
        """Return a lease, with what was used of it, and its chain. Raises `Unknown`."""

    def all(self, run: RunId | None = None, holder: str | None = None) -> Sequence[Lease]:
        """Return leases, oldest first; with `holder`, those of a principal or on its behalf."""

    def count(self, root: LeaseId) -> int:
        """Return how many leases hang on a root, itself included."""

    def descendants(self, lease: LeaseId) -> Sequence[LeaseId]:
        """Return a lease and every lease below it, itself first."""

    def revoke(self, leases: Sequence[LeaseId], reason: str, now: int) -> Sequence[LeaseId]:
        """Mark leases and return those that were not marked before."""

    def accounts(self, lease: LeaseId) -> Sequence[Account]:
        """Return the budgets of a lease and of all it descends from, itself first; nothing for an unknown lease."""

    def add_used(self, leases: Iterable[LeaseId], amounts: Mapping[BudgetKind, int]) -> None:
        """Add amounts (negative: take back, not below zero) to what was used of each of these leases."""

    def last_key_epoch(self) -> int:
        """Return the highest key epoch that a lease hangs on, 0 without leases."""


class PolicyRows(Protocol):
    """Adopted policies; the last one counts."""

    def add(self, digest: str, text: str, source: str, now: int) -> None:
        """Make a text the adopted policy; those before stay stored."""

    def last(self) -> tuple[str, str, str]:
        """Return text, source and hash of the adopted policy. Raises `Unknown`."""

    def last_hash(self) -> str:
        """Return the hash of the adopted policy, empty before the first."""

    def find(self, digest: str) -> tuple[str, str]:
        """Return text and source of a policy that was adopted some time, as it was the last time. Raises `Unknown`."""

    def all(self) -> Sequence[tuple[str, str]]:
        """Return hash and text of every policy that was adopted, each once."""


class GateRows(Protocol):
    """Questions for people, and the rules that ask nobody for a while."""

    def add(self, gate: Gate) -> None:
        """Store a gate. Raises `Taken`."""

    def find(self, gate: GateId) -> Gate:
        """Return a gate. Raises `Unknown`."""

    def all(
        self, state: GateState | None = None, subject: str | None = None, *, run: str | None = None, alike: Digest | None = None
    ) -> Sequence[Gate]:
        """Return gates, oldest first."""

    def asking(self, act: Digest) -> Sequence[Gate]:
        """Return the gates about exactly one act, oldest first; costs what is found."""

    def unclosed(self) -> Sequence[Gate]:
        """Return the gates that are not closed, oldest first; costs what is found."""

    def due(self, now: int) -> Sequence[Gate]:
        """Return the gates whose time to decide or to use was over at a time, oldest first; costs what is found."""

    def replace(self, before: Gate, after: Gate) -> bool:
        """Give a gate the answers, state, phase and outcome of `after` by compare-and-set, and tell whether it was as in `before`."""

    def add_bypass(self, bypass: Bypass) -> None:
        """Store a bypass. Raises `Taken`."""

    def find_bypass(self, bypass: GateId) -> Bypass:
        """Return a bypass. Raises `Unknown`."""

    def bypasses(self, since: int | None = None) -> Sequence[Bypass]:
        """Return bypasses, oldest first; with `since` those that neither ended nor expired at that time."""

    def end_bypass(self, bypass: GateId, now: int) -> bool:
        """Mark a bypass as ended; the first time stays. Tell whether this call did."""


class DocumentRows(Protocol):
    """Values that the composition keeps here."""

    def put(self, kind: str, id: str, body: Mapping[str, Any], expected: int) -> bool:
        """Store a body when the version is `expected` (0: there is none), and tell whether it was."""

    def find(self, kind: str, id: str) -> Document:
        """Return a document. Raises `Unknown`."""

    def all(self, kind: str) -> Sequence[Document]:
        """Return the documents of a kind, ordered by id."""

    def remove(self, kind: str, id: str, expected: int) -> bool:
        """Remove a document when its version is `expected`, and tell whether it was; one made again starts at version 1."""

    def keys(self, kind: str, prefix: str) -> Sequence[str]:
        """Return the ids of a kind that start with `prefix`, ordered; costs what is found."""


class LabelRows(Protocol):
    """The ledger of labels: of bytes at paths, of patterns, of runs."""

    def find(self, path: bytes, content: bytes) -> Labelled | None:
        """Return the row of exactly these bytes at this path; costs microseconds."""

    def empty(self) -> bool:
        """Tell whether there is no row of any bytes."""

    def of_content(self, content: bytes) -> Sequence[Labelled]:
        """Return the rows of these bytes, wherever they are."""

    def page(self, after: tuple[bytes, bytes], limit: int) -> Sequence[Labelled]:
        """Return up to `limit` rows behind a path and content, ordered by path and content."""

    def below(self, directory: bytes) -> Label | None:
        """Return the join of all rows strictly below a directory, None without any."""

    def put(self, rows: Iterable[Labelled]) -> None:
        """Store rows in the place of those of the same path and content."""

    def put_commit(self, commit: str, label: Label) -> None:
        """Join a label into what a commit brought."""

    def commits(self) -> Mapping[str, Label]:
        """Return the commits that brought something labelled, each with the join of that."""

    def marks(self) -> Sequence[Mark]:
        """Return every mark, ordered by pattern."""

    def put_mark(self, mark: Mark) -> None:
        """Store a mark in the place of one of the same pattern."""

    def remove_mark(self, pattern: str) -> bool:
        """Remove a mark and tell whether there was one."""

    def taint(self, run: str) -> Label:
        """Return the taint of a run, `DEFAULT` before it read anything above that."""

    def raise_taint(self, run: str, taint: Label) -> None:
        """Join a label into the taint of a run."""


class RecordRows(Protocol):
    """The chain of records, and which intents are not concluded."""

    def head(self) -> tuple[int, bytes]:
        """Return sequence number and hash of the last record; 0 and the genesis hash before the first."""

    def append(self, rows: Sequence[Row]) -> None:
        """Store the next records, in order. Raises `ChainBroken` for another sequence number than the next."""

    def find(self, sequence: int) -> Row:
        """Return a record. Raises `Unknown`."""

    def after(self, sequence: int, limit: int, kind: str | None = None, run: str | None = None) -> Sequence[Row]:
        """Return up to `limit` records after a sequence number, in order."""

    def first(self) -> int:
        """Return the number of the first record that is here and in no segment; 1 before the first."""

    def hashes(self, first: int, last: int) -> Sequence[bytes]:
        """Return the hashes of the records from `first` to `last` that are here, in order."""

    def last_before(self, time: int) -> int:
        """Return the last record before the first one of `time` or later."""

    def redact(self, sequence: int, commitment: bytes) -> None:
        """Put the commitment in the place of a record's body and salt, and nothing else anywhere."""

    def remove(self, first: int, last: int) -> None:
        """Remove the records of a segment that is stored."""

    def forget(self) -> None:
        """Take what was redacted and removed out of every file of the engine; outside of a transaction."""

    def await_outcomes(self, intents: Sequence[int]) -> None:
        """Remember intents as not concluded."""

    def close_intent(self, sequence: int) -> bool:
        """Forget an intent and tell whether it was remembered."""

    def open_intents(self) -> Sequence[Row]:
        """Return the records of the intents that are not concluded, in order."""


class TreeRows(Protocol):
    """The kept nodes of the tree over the records."""

    def add(self, nodes: Iterable[tuple[int, int, bytes]]) -> None:
        """Store nodes: level, position, hash. One that is stored stays as it is."""

    def find(self, level: int, position: int) -> bytes:
        """Return a node. Raises `Unknown`."""

    def count(self, level: int) -> int:
        """Return how many nodes of a level are stored, counted from the first without a gap."""


class CheckpointRows(Protocol):
    """Signed heads of the record, with the lines of witnesses."""

    def add(self, size: int, time: int, note: str) -> None:
        """Store a checkpoint; one of that size stays as it is."""

    def cosign(self, size: int, witness: str, line: str) -> None:
        """Store the line of a witness beside a checkpoint, in the place of an earlier one."""

    def after(self, size: int, limit: int) -> Sequence[Kept]:
        """Return up to `limit` checkpoints of more than `size` records, in order."""

    def last(self, size: int | None = None) -> Kept:
        """Return the largest checkpoint, with `size` the largest that has no more records. Raises `Unknown`."""

    def covering(self, size: int) -> Kept:
        """Return the smallest checkpoint that has at least so many records. Raises `Unknown`."""

    def witnessed(self, witness: str) -> int:
        """Return the size of the largest checkpoint that a witness cosigned, 0 without one."""


class SegmentRows(Protocol):
    """Records that left for files of their own."""

    def add(self, segment: Segment, runs: Iterable[str]) -> None:
        """Store the next segment, with the runs that its records are of.

        Raises `ChainBroken` for one that does not follow, or would leave no record behind it.
        """

    def all(self) -> Sequence[Segment]:
        """Return the segments, oldest first."""

    def of_run(self, run: str) -> Sequence[Segment]:
        """Return the segments with records of a run, oldest first."""

    def replace(self, first: int, digest: bytes) -> None:
        """Give a segment the digest of the file that was written in its place."""

    def give_up(self, first: int, now: int) -> None:
        """Mark a segment as removed; the first time stays."""


class Engine(Protocol):
    """The rows of trust, and the transactions around them."""

    @property
    def principals(self) -> PrincipalRows:
        """Return the principals."""

    @property
    def tokens(self) -> TokenRows:
        """Return the tokens."""

    @property
    def leases(self) -> LeaseRows:
        """Return the leases."""

    @property
    def policies(self) -> PolicyRows:
        """Return the adopted policies."""

    @property
    def gates(self) -> GateRows:
        """Return the gates."""

    @property
    def documents(self) -> DocumentRows:
        """Return the documents."""

    @property
    def labels(self) -> LabelRows:
        """Return the ledger of labels."""

    @property
    def records(self) -> RecordRows:
        """Return the records."""

    @property
    def tree(self) -> TreeRows:
        """Return the tree over the records."""

    @property
    def checkpoints(self) -> CheckpointRows:
        """Return the checkpoints."""

    @property
    def segments(self) -> SegmentRows:
        """Return the segments."""

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[None]:
        """Run a block as one atomic step; with `durable`, wait for stable storage at its end."""

    def in_transaction(self) -> bool:
        """Tell whether this thread is inside a transaction."""

    def flush(self) -> None:
        """Return once everything committed before is on stable storage."""

    def epoch(self) -> Epoch:
        """Return the number that `bump` makes grow."""

    def bump(self) -> None:
        """Make the epoch grow: a decision made before may be another now."""

    def close(self) -> None:
        """Flush and release everything. Repeats do nothing."""
