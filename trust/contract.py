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
8.  Records are append-only: `append` takes the next sequence number and nothing else; nothing the engine does changes or removes one.
9.  What cannot be stored (disk full, read-only, out of reach) raises `RecorderUnavailable`, and nothing of the transaction remains.
10. Every method may be called from several threads. None calls back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from trust.budgets import Account
from trust.chain import Row
from trust.leases import Chain
from trust.model import BudgetKind, Document, Epoch, Gate, GateId, GateState, Lease, LeaseId, Principal, RunId, Token, TokenId
from trust.secret import Secret

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


class GateRows(Protocol):
    """Questions for people."""

    def add(self, gate: Gate) -> None:
        """Store a gate. Raises `Taken`."""

    def find(self, gate: GateId) -> Gate:
        """Return a gate. Raises `Unknown`."""

    def all(self, state: GateState | None = None, subject: str | None = None) -> Sequence[Gate]:
        """Return gates, oldest first."""

    def move(self, source: GateState, target: Gate, *, open_at: int | None = None, due_at: int | None = None) -> bool:
        """Give a gate the state and answer of `target` by compare-and-set, and tell whether it moved.

        It moves when its id and digest are those of `target`, its state is `source` and, where asked for, its deadline is after `open_at`,
        or is not after `due_at`.
        """


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

    def await_outcomes(self, intents: Sequence[int]) -> None:
        """Remember intents as not concluded."""

    def close_intent(self, sequence: int) -> bool:
        """Forget an intent and tell whether it was remembered."""

    def open_intents(self) -> Sequence[Row]:
        """Return the records of the intents that are not concluded, in order."""


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
    def records(self) -> RecordRows:
        """Return the records."""

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
