"""Where the checks work: an engine over a folder of its own, and the samples they store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trust.chain import SALT_BYTES, Draft, Row, seal
from trust.contract import Engine
from trust.engines import open_engine
from trust.errors import TrustError
from trust.gates import Question, make_gate
from trust.labels import Label, Origin, Sensitivity
from trust.leases import Chain
from trust.model import Action, Ask, BudgetKind, Gate, GateId, Lease, LeaseId, Principal, PrincipalKind, PrincipalName, RunId, Scope


class BrokenPromise(AssertionError):
    """An engine does not do what the contract says."""


class Bench:
    """An engine under test."""

    def __init__(self, name: str, folder: Path) -> None:
        """Open the engine `name` over an empty or missing folder."""
        self.name = name
        self.folder = folder
        self.engine = open_engine(name, folder)

    @contextmanager
    def other(self) -> Iterator[Engine]:
        """Open the same state once more, as another process would."""
        engine = open_engine(self.name, self.folder)
        try:
            yield engine
        finally:
            engine.close()

    def reopen(self) -> Engine:
        """Close and open again."""
        self.engine.close()
        self.engine = open_engine(self.name, self.folder)
        return self.engine

    def append(self, body: str = "{}", engine: Engine | None = None) -> Row:
        """Append one record and return it; the caller holds a transaction."""
        used = engine or self.engine
        sequence, digest = used.records.head()
        row = seal(Draft(7, "intent", None, "merge", "ana", "run-1", "l1", body), sequence + 1, digest, bytes(SALT_BYTES))
        used.records.append([row])
        return row


Check = Callable[[Bench], None]
"""One promise, tried."""


def expect(holds: object, promise: str) -> None:
    """Raise `BrokenPromise` unless the promise holds."""
    if not holds:
        raise BrokenPromise(promise)


@contextmanager
def expect_error(kind: type[TrustError], promise: str) -> Iterator[None]:
    """Raise `BrokenPromise` unless the block raises this kind of error."""
    try:
        yield
    except kind:
        return
    raise BrokenPromise(promise)


def sample_principal(name: str = "ana") -> Principal:
    """Return a principal."""
    return Principal(PrincipalName(name), PrincipalKind.HUMAN, 5, attributes={"roles": "owner"})


def sample_lease(name: str, parent: str | None = None, limit: int | None = 100) -> tuple[Lease, Chain]:
    """Return a lease of `ana`, and its chain."""
    budgets = {} if limit is None else {BudgetKind.READS: limit}
    limits = (("mail",), frozenset({"s3", "mount"}), Label(Origin.INTERNAL, Sensitivity.PUBLIC), ("planner", "tester"), "x5t:key", 3)
    scope = Scope(("src/**", "docs/*.md"), frozenset({Action.READ, Action.LIST}), 3, 900, "to try", budgets, *limits)
    above = None if parent is None else LeaseId(parent)
    caveats = () if parent is None else ({"exp": 900},)
    lease = Lease(LeaseId(name), RunId("run-1"), PrincipalName("ana"), PrincipalName("ana"), scope, 4, above)
    return lease, Chain(LeaseId("l1"), caveats, 1)


def sample_gate(name: str = "g1", deadline: int = 90) -> Gate:
    """Return a pending gate that was asked at 10 and can be answered for `deadline` seconds."""
    card = {"what": "merge", "paths": ["a", "\udcff"]}
    question = Question(
        *("proposal:p1", {"verb": "merge", "head": "c1"}, card, Ask("owner", deadline, approvals=2), "big", "coder"), run="run-1"
    )
    return make_gate(GateId(name), question, ["coder"], 10)
