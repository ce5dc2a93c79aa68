"""The one class callers meet: gather, decide, act.

1. Principals, tokens, leases, gates, documents, the adopted policy and the record, over one engine. Deciding is pure: `trust.policy`.
2. What changes something is durable when it returns; inside `transaction`, when that block ends. The exceptions say so: `charge`, `refund`,
   `conclude` and `state` are visible at once and durable soon.
3. Nothing here records by itself: what is consequential is the composition's to announce and conclude.
4. Any thread may call; any number of processes may hold one each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from trust.budgets import Account, check_amounts, check_charge, left_of
from trust.cache import FOREVER
from trust.checkpoints import Checkpoint
from trust.contract import Engine
from trust.credentials import Claim, Credentials, Holder
from trust.derived import SigningKey
from trust.engines import open_engine
from trust.errors import Outdated, PolicyInvalid, Taken, Unknown
from trust.evidence import Evidence
from trust.keys import Keys
from trust.ledger import Ledger
from trust.model import (
    BudgetKind,
    Document,
    Epoch,
    Gate,
    GateId,
    GateState,
    Identity,
    Lease,
    LeaseId,
    Principal,
    PrincipalKind,
    PrincipalName,
    Record,
    RunId,
    Scope,
    Token,
    TokenId,
    Verification,
)
from trust.model import Sequence as RecordSequence
from trust.policy.compiling import compile_policy, empty_policy
from trust.policy.rules import CompiledPolicy
from trust.presented import PresentedCache, digest_of
from trust.questions import Questions
from trust.recorder import Recorder
from trust.verification import Anchor, RecordWalk


class Trust:
    """Everything trust keeps. Make one with `Trust.open`."""

    def __init__(self, engine: Engine, keys: Keys, evidence: Evidence, entropy: Callable[[int], bytes]) -> None:
        self._engine = engine
        self.evidence = evidence
        self._keys = keys
        self._credentials = Credentials(engine, keys, entropy)
        self._recorder = Recorder(engine, evidence, entropy)
        self.ledger = Ledger(engine)
        self.questions = Questions(engine, self._credentials.make_id)
        self._policy = empty_policy("no policy")
        self._presented: PresentedCache[Identity] = PresentedCache()
        self._signing: PresentedCache[tuple[SigningKey, Claim]] = PresentedCache()

    @classmethod
    def open(cls, folder: Path, *, engine: str = "sqlite", entropy: Callable[[int], bytes] = os.urandom) -> Trust:
        """Open the state in a folder, making it if there is none. Raises `RecorderUnavailable`."""
        opened = open_engine(engine, folder)
        keys = Keys(folder / "keys", opened.leases.last_key_epoch(), entropy)
        return cls(opened, keys, Evidence(opened, folder, entropy), entropy)

    def close(self) -> None:
        """Flush and release everything. Repeats do nothing."""
        self._engine.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Make every write inside one atomic step that is durable when the block ends.

        Writers wait for each other: keep it short, and do not await inside it, since it belongs to the thread.
        """
        return self._engine.transaction()

    def epoch(self) -> Epoch:
        """Return a number that grows whenever a decision made before may be another now, in any process; costs microseconds."""
        return self._engine.epoch()

    def add_principal(self, name: str, kind: PrincipalKind, now: int, attributes: Mapping[str, str] | None = None) -> Principal:
        """Add a principal. The attribute ``roles`` names standing roles, separated by commas. Raises `Taken`."""
        principal = Principal(PrincipalName(name), kind, now, attributes=dict(attributes or {}))
        with self._engine.transaction():
            self._engine.principals.add(principal)
        return principal

    def principal(self, name: str) -> Principal:
        """Return a principal. Raises `Unknown`."""
        return self._engine.principals.find(name)

    def principals(self) -> Sequence[Principal]:
        """Return all principals, ordered by name."""
        return self._engine.principals.all()

    def set_attributes(self, name: str, attributes: Mapping[str, str]) -> None:
        """Replace the attributes of a principal, its standing roles with them. Raises `Unknown`."""
        with self._engine.transaction():
            self._engine.principals.find(name)
            self._engine.principals.set_attributes(name, attributes)
            self._engine.bump()

    def disable_principal(self, name: str, now: int) -> None:
        """Stop a principal: its tokens, its leases and those on its behalf are revoked with it. Raises `Unknown`."""
        with self._engine.transaction():
            self._engine.principals.find(name)
            self._engine.principals.disable(name)
            for token in self._engine.tokens.all(name):
                self._engine.tokens.revoke(token.id, now)
            for lease in self._engine.leases.all(holder=name):
                self._engine.leases.revoke(self._engine.leases.descendants(lease.id), f"{name} was disabled", now)
            self._engine.bump()

    def issue_token(self, principal: str, label: str, expires: int | None, now: int) -> tuple[Token, str]:
        """Make a token for a principal; the secret beside it is shown this once. Raises `Unknown`, `Disabled`."""
        with self._engine.transaction():
            return self._credentials.issue_token(principal, label, expires, now)

    def tokens(self, principal: str | None = None) -> Sequence[Token]:
        """Return tokens, oldest first."""
        return self._engine.tokens.all(principal)

    def token(self, token: str) -> Token:
        """Return a token. Raises `Unknown`."""
        return self._engine.tokens.find(TokenId(token))[0]

    def revoke_token(self, token: str, now: int) -> None:
        """Stop a token. Raises `Unknown`."""
        with self._engine.transaction():
            found, _ = self._engine.tokens.find(TokenId(token))
            self._engine.tokens.revoke(found.id, now)
            self._engine.bump()

    def authenticate(self, secret: str, now: int) -> Identity:
        """Return whom a token or lease secret speaks for. A lease that has not begun passes; deciding refuses it.

        Raises `Unauthenticated`, `LeaseExpired`, `LeaseRevoked`, `Disabled`.
        """
        return self._recognised(digest_of("bearer", secret), now, lambda: self._credentials.recognise(secret, now))

    def authenticate_basic(self, user: str, password: str, now: int) -> Identity:
        """Return whom HTTP Basic credentials speak for. Raises as `authenticate`.

        A lease id with `basic_password` (who narrowed a token offline gives it without its tail as the user), or a lease id or a
        principal's name with the whole secret.
        """
        return self._recognised(digest_of("basic", user, password), now, lambda: self._credentials.recognise_basic(user, password, now))

    def signing_key(self, access_key: str, session_token: str, day: str, region: str, service: str) -> tuple[SigningKey, Claim]:
        """Return what signs as the holder of an S3 key pair, and what it claims: `admit` it once a signature was right.

        `session_token` is empty without one; `day` is YYYYMMDD. Raises `Unauthenticated`.
        """
        epoch, digest = self.epoch(), digest_of(access_key, session_token, day, region, service)
        found = self._signing.find(epoch, digest, 0)
        if found is None:
            claim = self._credentials.claim(access_key, session_token)
            found = SigningKey(claim.secret, day, region, service), claim
            self._signing.keep(epoch, digest, found, FOREVER)
        return found

    def admit(self, claim: Claim, now: int) -> Identity:
        """Return whom a claim speaks for that a signature proved. Raises as `authenticate`."""
        return self._recognised(claim.digest, now, lambda: self._credentials.admit(claim, now))

    def _recognised(self, digest: bytes, now: int, recognise: Callable[[], Holder]) -> Identity:
        epoch = self.epoch()
        identity = self._presented.find(epoch, digest, now)
        if identity is None:
            holder = recognise()
            identity = Identity(holder.principal, self.roles(holder.principal), holder.token, holder.lease)
            self._presented.keep(epoch, digest, identity, holder.until)
        return identity

    def basic_password(self, lease: LeaseId) -> str:
        """Return the password of a lease for HTTP Basic. Raises `Unknown`, `KeyMissing`."""
        return self._credentials.basic_password(lease)

    def access_key(self, lease: LeaseId) -> tuple[str, str, str]:
        """Return access key, secret and session token of a lease for S3. Raises `Unknown`, `KeyMissing`.

        The session token is empty where none is needed; a client that cannot send one may leave it out from now on.
        """
        with self._engine.transaction():
            pair = self._credentials.key_pair(lease)
        return pair.access_key, pair.secret.reveal().decode(), pair.session_token

    def token_key_pair(self, token: str) -> tuple[str, str]:
        """Return access key and secret of a principal's token, by its id, for S3. Raises `Unknown`."""
        pair = self._credentials.token_key_pair(token)
        return pair.access_key, pair.secret.reveal().decode()

    def roles(self, principal: Principal) -> frozenset[str]:
        """Return the roles that the adopted policy and the principal's own attributes give it."""
        standing = (role.strip() for role in principal.attributes.get("roles", "").split(","))
        try:
            given = self.policy().roles_of(principal.name)
        except PolicyInvalid:
            given = frozenset()  # an adopted text that this release no longer reads gives nothing; standing roles repair it
        return given | {role for role in standing if role}

    def issue_lease(self, run: RunId, principal: PrincipalName, on_behalf_of: PrincipalName, scope: Scope, now: int) -> tuple[Lease, str]:
        """Make the root lease of a run and return it with its secret. Raises `Unknown`, `Disabled`, `ScopeInvalid`."""
        with self._engine.transaction():
            return self._credentials.issue_lease(run, principal, on_behalf_of, scope, now)

    def narrow_lease(self, lease: LeaseId, scope: Scope, now: int) -> tuple[Lease, str]:
        """Make a lease below another and return it with its secret; what `scope` leaves open comes from the parent.

        Raises `Unknown`, `Widened`, `ScopeInvalid`, `LeaseExpired`, `LeaseRevoked`, `KeyMissing`.
        """
        with self._engine.transaction():
            return self._credentials.narrow_lease(lease, scope, now)

    def lease_secret(self, lease: LeaseId) -> str:
        """Return the secret of a lease again. Raises `Unknown`, `KeyMissing`."""
        return self._credentials.secret_of(lease)

    def rotate_key(self) -> int:
        """Make the next key epoch for leases to come and return it."""
        return self._keys.rotate()

    def lease(self, lease: LeaseId) -> Lease:
        """Return a lease. Raises `Unknown`."""
        return self._engine.leases.find(lease)[0]

    def leases(self, run: RunId | None = None) -> Sequence[Lease]:
        """Return leases, oldest first."""
        return self._engine.leases.all(run)

    def leases_below(self, lease: LeaseId) -> Sequence[LeaseId]:
        """Return a lease and every lease below it that was seen, itself first."""
        return self._engine.leases.descendants(lease)

    def revoke_lease(self, lease: LeaseId, reason: str, now: int) -> Sequence[LeaseId]:
        """End a lease and everything below it, and return what ended. Raises `Unknown`."""
        with self._engine.transaction():
            self._engine.leases.find(lease)
            ended = self._engine.leases.revoke(self._engine.leases.descendants(lease), reason, now)
            self._engine.bump()
        return ended

    def charge(self, lease: LeaseId, amounts: Mapping[BudgetKind, int]) -> None:
        """Spend from a lease and all it descends from, or from none. Raises `BudgetSpent`, `Unknown`."""
        check_amounts(amounts)
        with self._engine.transaction(durable=False):
            accounts = self._accounts(lease)
            check_charge(accounts, amounts)
            self._engine.leases.add_used({account.lease for account in accounts}, amounts)

    def refund(self, lease: LeaseId, amounts: Mapping[BudgetKind, int]) -> None:
        """Give back what was charged and not used. Raises `Unknown`."""
        check_amounts(amounts)
        with self._engine.transaction(durable=False):
            leases = {account.lease for account in self._accounts(lease)}
            self._engine.leases.add_used(leases, {kind: -amount for kind, amount in amounts.items()})

    def left(self, lease: LeaseId) -> Mapping[BudgetKind, int]:
        """Return what is left of each limited budget: the least over the lease and all it descends from. Raises `Unknown`."""
        return left_of(self._accounts(lease))

    def _accounts(self, lease: LeaseId) -> Sequence[Account]:
        accounts = self._engine.leases.accounts(lease)
        if not accounts:
            raise Unknown(lease, "no such lease")
        return accounts

    def adopt_policy(self, text: str, source: str, now: int) -> str:
        """Make a policy the one that counts and return its hash. Raises `PolicyInvalid` with every diagnostic."""
        compiled = compile_policy(text, source)
        with self._engine.transaction():
            self._engine.policies.add(compiled.hash, text, source, now)
            self._engine.bump()
        return compiled.hash

    def adopted_policy(self) -> tuple[str, str, str]:
        """Return text, source and hash of the adopted policy. Raises `Unknown` before the first."""
        return self._engine.policies.last()

    def archived_policy(self, digest: str) -> CompiledPolicy:
        """Return a policy that was adopted some time, by its hash. Raises `Unknown`, `PolicyInvalid`."""
        text, source = self._engine.policies.find(digest)
        return compile_policy(text, source)

    def policy(self) -> CompiledPolicy:
        """Return the adopted policy, compiled; before the first, the one that grants nothing. Raises `PolicyInvalid`."""
        found = self._engine.policies.last_hash()
        policy = self._policy
        if found and found != policy.hash:
            text, source, _ = self._engine.policies.last()
            self._policy = policy = compile_policy(text, source)
        return policy

    def gate(self, gate: GateId) -> Gate:
        """Return a gate. Raises `Unknown`."""
        return self._engine.gates.find(gate)

    def gates(self, state: GateState | None = None, subject: str | None = None) -> Sequence[Gate]:
        """Return gates, oldest first."""
        return self._engine.gates.all(state, subject)

    def put_document(self, kind: str, id: str, body: Mapping[str, Any], expected: int) -> Document:
        """Store a document at the version after `expected` (0: it must not exist). Raises `Taken`, `Outdated`."""
        with self._engine.transaction():
            if not self._engine.documents.put(kind, id, body, expected):
                raise Outdated(id, f"the {kind} is not at version {expected}") if expected else Taken(id, f"there is such a {kind}")
        return Document(kind, id, expected + 1, dict(body))

    def document(self, kind: str, id: str) -> Document:
        """Return a document. Raises `Unknown`."""
        return self._engine.documents.find(kind, id)

    def documents(self, kind: str) -> Sequence[Document]:
        """Return the documents of a kind, ordered by id."""
        return self._engine.documents.all(kind)

    def remove_document(self, kind: str, id: str, expected: int) -> bool:
        """Remove a document when its version is `expected`, and tell whether it was; one made again starts at version 1."""
        with self._engine.transaction():
            return self._engine.documents.remove(kind, id, expected)

    def document_keys(self, kind: str, prefix: str) -> Sequence[str]:
        """Return the ids of a kind that start with `prefix`, ordered."""
        return self._engine.documents.keys(kind, prefix)

    def intend(self, kind: str, identity: Identity | None, body: Mapping[str, Any], now: int) -> RecordSequence:
        """Record what is about to happen, durably, and return its number. Raises `RecorderUnavailable`, `ChainBroken`."""
        return self._recorder.intend(kind, identity, body, now)

    def conclude(self, intent: RecordSequence, body: Mapping[str, Any], now: int) -> RecordSequence:
        """Record what came of an intent, durable soon. Raises `Unknown` when it is no intent or was concluded."""
        return self._recorder.conclude(intent, body, now)

    def state(self, kind: str, identity: Identity | None, body: Mapping[str, Any], now: int) -> RecordSequence:
        """Record a fact, durable soon, and return its number."""
        return self._recorder.state(kind, identity, body, now)

    def flush(self) -> None:
        """Return once everything recorded before is on stable storage. Raises `RecorderUnavailable`."""
        self._engine.flush()

    def unconcluded(self) -> Sequence[Record]:
        """Return the intents without an outcome, oldest first."""
        return self._recorder.unconcluded()

    def record(self, sequence: int) -> Record:
        """Return one record. Raises `Unknown`."""
        return self._recorder.record(sequence)

    def records(self, after: int = 0, limit: int | None = None, kind: str | None = None, run: str | None = None) -> Iterator[Record]:
        """Yield records after a number, in order."""
        return self._recorder.records(after, limit, kind, run)

    def head(self) -> tuple[int, str]:
        """Return number and hash of the last record: an anchor for `verify` once it is kept elsewhere."""
        return self._recorder.head()

    def verify(self, anchor: Anchor | None = None, outside: Sequence[tuple[str, Checkpoint]] = ()) -> Verification:
        """Walk the whole record; see `trust.verification`. One that is wrong is not continued."""
        walk = RecordWalk(self.evidence, anchor, outside)
        found = walk.run()
        if walk.broken:
            self._recorder.distrust(walk.broken)
        return found

    def distrust(self, why: str) -> None:
        """Record nothing more: the record was found wrong. It holds until the state is opened again."""
        self._recorder.distrust(why)
