"""The values trust speaks in: frozen, without I/O and without a clock.

1. Times are integers, seconds since the epoch. Sizes are bytes.
2. Paths are `bytes` with names joined by ``/`` and no leading or trailing slash; patterns are text (see `trust.policy.patterns`).
3. No value here holds a secret or what a secret can be computed from.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NewType

PrincipalName = NewType("PrincipalName", str)
TokenId = NewType("TokenId", str)
RunId = NewType("RunId", str)
LeaseId = NewType("LeaseId", str)
GateId = NewType("GateId", str)
Digest = NewType("Digest", str)
Sequence = NewType("Sequence", int)
Epoch = NewType("Epoch", int)


class PrincipalKind(enum.Enum):
    """What sort of someone a principal is."""

    HUMAN = "human"
    AGENT = "agent"
    SERVICE = "service"
    NODE = "node"


class Action(enum.Enum):
    """What can be asked for: a closed set, free of protocols and tools.

    The first group is what a lease can carry; the second is what principals do outside of leases. Nothing here deletes
    a snapshot, a backup or a record: no lease and no policy can express it.
    """

    LIST = "list"
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    PROPOSE = "propose"

    START = "start"
    MERGE = "merge"
    ANSWER = "answer"
    OBSERVE = "observe"
    RESTORE = "restore"
    ADMINISTER = "administer"

    __hash__ = object.__hash__  # a member is one object; Enum's own is a call on the way of every decision


LEASABLE = frozenset({Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.PROPOSE})


class BudgetKind(enum.Enum):
    """What a lease can run out of."""

    READS = "reads"
    BYTES_READ = "bytes_read"
    BYTES_WRITTEN = "bytes_written"
    COMMITS = "commits"

    __hash__ = object.__hash__  # as for `Action`


class Effect(enum.Enum):
    """What a decision says."""

    ALLOW = "allow"
    DENY = "deny"
    GATE = "gate"


class LeaseState(enum.Enum):
    """Whether a lease counts, at a given time."""

    PENDING = "pending"
    LIVE = "live"
    EXPIRED = "expired"
    REVOKED = "revoked"


class GateState(enum.Enum):
    """Where a question for a human stands."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    CONSUMED = "consumed"


class RecordPhase(enum.Enum):
    """Whether a record announces an act, reports one, or states a fact."""

    INTENT = "intent"
    OUTCOME = "outcome"
    FACT = "fact"


@dataclass(frozen=True, slots=True)
class Principal:
    """Someone who can authenticate and be held to account."""

    name: PrincipalName
    kind: PrincipalKind
    created: int
    disabled: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Token:
    """A principal's own credential; the secret was shown once and only its hash is kept."""

    id: TokenId
    principal: PrincipalName
    label: str
    created: int
    expires: int | None
    revoked: int | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What a lease allows: path patterns, actions, the half-open time [not_before, expires), purpose, and budgets.

    A budget that is missing is unlimited.
    """

    paths: tuple[str, ...]
    actions: frozenset[Action]
    not_before: int
    expires: int
    purpose: str = ""
    budgets: Mapping[BudgetKind, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lease:
    """The authorization of a run. `used` counts what was charged against it and its descendants."""

    id: LeaseId
    run: RunId
    principal: PrincipalName
    on_behalf_of: PrincipalName
    scope: Scope
    created: int
    parent: LeaseId | None = None
    revoked: int | None = None
    reason: str = ""
    used: Mapping[BudgetKind, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a secret speaks for: a principal by its own token, or a run's lease."""

    principal: Principal
    roles: frozenset[str]
    token: TokenId | None = None
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """What a proposal would do to its target, as the policy may look at it."""

    paths: tuple[bytes, ...] = ()
    deleted: tuple[bytes, ...] = ()
    files: int = 0
    deletes: int = 0
    bytes: int = 0
    twins: int = 0
    checks: str = "none"
    """``none``, ``passed``, ``failed`` or ``missing``."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a decision may look at. All of it is required, so that a missing fact is a construction error.

    `lease` is None when a principal acts on its own; `path` is None when the action is not about one path; `left` is
    what remains of each limited budget; `needs` is what this act would charge; `gate` is the id of an approved gate for
    exactly this act; `protected` tells whether the branch only moves by merges; `disabled` whether the principal, or
    the one it acts for, may not act any more.
    """

    now: int
    principal: PrincipalName
    kind: PrincipalKind
    roles: frozenset[str]
    on_behalf_of: PrincipalName
    action: Action
    path: bytes | None
    lease: Scope | None
    lease_state: LeaseState | None
    left: Mapping[BudgetKind, int]
    needs: Mapping[BudgetKind, int]
    protected: bool
    change: ChangeFacts | None
    request: Scope | None
    gate: GateId | None
    disabled: bool


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a policy document; line and column count from 1. Line 0 stands for what is built in."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """Return ``file:line:column``."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Denial(enum.Enum):
    """Why a decision is not `ALLOW`, as a class that doors can map; the reason is the text for people."""

    NONE = "none"
    POLICY = "policy"
    LEASE_PATH = "lease-path"
    LEASE_ACTION = "lease-action"
    LEASE_PENDING = "lease-pending"
    LEASE_EXPIRED = "lease-expired"
    LEASE_REVOKED = "lease-revoked"
    BUDGET = "budget"
    PROTECTED = "protected"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a gate needs from people: the role, the seconds to decide in, and what happens when nobody does."""

    required_role: str
    deadline: int
    fallback: str = "reject"


@dataclass(frozen=True, slots=True)
class Decision:
    """Allow, deny or gate; why; and the place in the policy that said so.

    `rule` is the id of the deciding grant or guard; `ask` is set when the effect is `GATE`.
    """

    effect: Effect
    reason: str
    rule: str
    position: Position
    denial: Denial = Denial.NONE
    ask: Ask | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A question for a human, bound to the digest of exactly what is shown on its card."""

    id: GateId
    subject: str
    digest: Digest
    card: Mapping[str, Any]
    required_role: str
    created: int
    deadline: int
    fallback: str
    state: GateState = GateState.PENDING
    asked_by: str = ""
    answered_by: str = ""
    answered: int | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of the chain. `hash` covers everything before it; `refers` is the intent an outcome belongs to."""

    sequence: Sequence
    time: int
    phase: RecordPhase
    kind: str
    principal: str
    run: str
    lease: str
    body: Mapping[str, Any]
    refers: Sequence | None
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Document:
    """A value the composition keeps here with compare-and-set: its kind, id, version (from 1) and JSON body."""

    kind: str
    id: str
    version: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk of the chain found. `first_bad` is the first sequence number that does not verify.

    `completeness` is a sentence: without an outside anchor a dropped tail cannot be seen.
    """

    ok: bool
    records: int
    first_bad: int | None
    why: str
    completeness: str
    head: str
