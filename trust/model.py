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

from trust.labels import Label

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
    EGRESS = "egress"

    START = "start"
    MERGE = "merge"
    ANSWER = "answer"
    OBSERVE = "observe"
    RESTORE = "restore"
    ADMINISTER = "administer"
    ENDORSE = "endorse"

    __hash__ = object.__hash__  # a member is one object; Enum's own is a call on the way of every decision


LEASABLE = frozenset({Action.LIST, Action.READ, Action.WRITE, Action.DELETE, Action.PROPOSE, Action.EGRESS})
USUAL = LEASABLE - {Action.EGRESS}
"""What a lease carries when nothing is named: an effect outside of the own branch is always asked for by name."""


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
    """What became of a question for a human; how far that was carried out is its `GatePhase`.

    Expired: nobody answered in time. Lapsed: nobody used the approval in time. Withdrawn: whoever asked took it back. Superseded: what it
    was about changed.
    """

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    LAPSED = "lapsed"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


class GatePhase(enum.Enum):
    """How far a question has come: decided, taken over by whoever carries the decision out, and done with."""

    PENDING = "pending"
    DECIDED = "decided"
    ACKNOWLEDGED = "acknowledged"
    CLOSED = "closed"


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

    A budget that is missing is unlimited. `destinations` are patterns for accounts that an outward act may go to without a question, since
    whoever gave the lease named them; `doors` are the doors it may be used at (None: all); `ceiling` is the most it may read (None: all);
    `actors` is the chain of those it was handed on to; `holder` is the thumbprint of the key whose owner alone may use it (empty: anybody
    who has the secret); `depth` is how many generations of narrower leases may hang below it (None: any number).
    """

    paths: tuple[str, ...]
    actions: frozenset[Action]
    not_before: int
    expires: int
    purpose: str = ""
    budgets: Mapping[BudgetKind, int] = field(default_factory=dict)
    destinations: tuple[str, ...] = ()
    doors: frozenset[str] | None = None
    ceiling: Label | None = None
    actors: tuple[str, ...] = ()
    holder: str = ""
    depth: int | None = None


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
    """Whom a credential speaks for: a principal by its own, or a run's lease.

    `method` says what was proven (``token``, ``lease``, ``oidc``, ``certificate``, ``app-password``, ``key``; empty for the appliance
    itself) and `door` where (empty inside of the appliance). `limits` is what a credential of a principal is narrowed to.
    """

    principal: Principal
    roles: frozenset[str]
    token: TokenId | None = None
    lease: Lease | None = None
    door: str = ""
    method: str = ""
    limits: Scope | None = None

    @property
    def scope(self) -> Scope | None:
        """Return what this may do at most: the lease's scope, or the limits of the credential; None when the policy alone says."""
        return self.lease.scope if self.lease else self.limits


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
    stale_reads: int = 0
    """How many of the files that the run read have changed on the target since."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a decision may look at. All of it is required, so that a missing fact is a construction error.

    `lease` is None when a principal acts on its own; `path` is None when the action is not about one path; `left` is
    what remains of each limited budget; `needs` is what this act would charge; `gate` is the id of an approved gate for
    exactly this act; `protected` tells whether the branch only moves by merges; `disabled` whether the principal, or
    the one it acts for, may not act any more.

    `taint` is the join of what the run has read; `label` is that of what the act is about: the file, all that a merge would bring, all that
    a requested lease could reach. `outward` tells whether the run can or did act outside of its branch, by more than proposals;
    `destination` is the account that an outward act goes to, empty for others.
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
    taint: Label
    label: Label
    outward: bool
    destination: str


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
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a gate needs from people: the role, the seconds to decide in, and what happens when nobody does.

    `approvals` different people have to say yes; with `independent` the one the run works for is none of them; an approval counts for
    `use_within` seconds.
    """

    required_role: str
    deadline: int
    fallback: str = "reject"
    approvals: int = 1
    independent: bool = False
    use_within: int = 86400


@dataclass(frozen=True, slots=True)
class Decision:
    """Allow, deny or gate; why; and the place in the policy that said so.

    `rule` is the id of the deciding grant or guard. When the effect is `GATE`, `ask` is set and `asking` names every rule that asks.
    """

    effect: Effect
    reason: str
    rule: str
    position: Position
    denial: Denial = Denial.NONE
    ask: Ask | None = None
    hint: str = ""
    asking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What one person said to a question."""

    by: str
    approve: bool
    at: int
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A question for a human.

    `digest` is of exactly what is shown, and an answer names it; `act` is of exactly what would be done, and only that is released. `alike`
    is shared by questions that are the same to whoever judges. `excluded` may not answer. An approval counts from `answered` until
    `usable_until`: once, or with `standing` for every repeat of the act. `successor` names what superseded it.
    """

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
    phase: GatePhase = GatePhase.PENDING
    act: Digest = Digest("")
    alike: Digest = Digest("")
    run: str = ""
    rule: str = ""
    approvals: int = 1
    excluded: tuple[str, ...] = ()
    use_within: int = 86400
    standing: bool = False
    answers: tuple[Answer, ...] = ()
    usable_until: int | None = None
    successor: str = ""
    acknowledged: int | None = None
    closed: int | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Bypass:
    """A rule that asks nobody for a while, as it reads in one policy: everything done under it is recorded with it."""

    id: GateId
    rule: str
    policy: str
    by: str
    reason: str
    created: int
    expires: int
    ended: int | None = None


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
class Labelled:
    """What the ledger says of exactly these bytes at this path; an endorsed label stands instead of what the patterns say."""

    path: bytes
    content: bytes
    label: Label
    endorsed: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A label that somebody put on every path of a pattern; it only raises."""

    pattern: str
    label: Label


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
