"""Where every door comes in: secrets become callers, callers get workspaces, notes and what happens.

1. The daemon and every gateway process have one; only what changes more than files differs between them (`call`).
2. A workspace is opened once for a holder and a branch and shared by its requests, in this process: what was decided stays cached
   under the epoch, what was counted is flushed every second and when it closes. It closes after it rested for a while.
3. Every error of the contexts leaves as a fault.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import INSIDE, Arrival, Caller, Document, Notes, Signer, Workspace
from nasd.faults import as_fault, guarded
from nasd.identities.doorkeeper import MOUNTING, Doorkeeper
from nasd.notes import DoorNotes
from nasd.sight import Sight
from nasd.views import view_record
from nasd.workspaces import SharedWorkspaces
from store.errors import StoreError
from trust.credentials import Claim
from trust.derived import SigningKey
from trust.errors import TrustError
from trust.leases import require_usable
from trust.model import Action, Identity

EVENT_WAIT = 0.25
FLUSH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class IdentifiedCaller:
    """Who an authenticated request speaks for."""

    identity: Identity

    @property
    def principal(self) -> str:
        """Return the principal's name."""
        return self.identity.principal.name

    @property
    def lease(self) -> str:
        """Return the lease id, empty for a principal's own token."""
        return self.identity.lease.id if self.identity.lease else ""

    @property
    def run(self) -> str:
        """Return the run the lease is of, empty for a principal's own token."""
        return self.identity.lease.run if self.identity.lease else ""

    @property
    def actions(self) -> frozenset[str] | None:
        """Return the actions the lease or app password carries, None for a principal's own token."""
        scope = self.identity.scope
        return frozenset(action.value for action in scope.actions) if scope else None

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the patterns of the paths the lease or app password is about; everything for a principal's own token."""
        return self.identity.scope.paths if self.identity.scope else ("**",)


class KeyPair:
    """What checks the signatures of an S3 key pair."""

    def __init__(self, key: SigningKey, admit: Callable[[], Caller], refuse: Callable[[], None]) -> None:
        """Sign with `key`; `admit` lets its holder in, `refuse` counts who is none."""
        self._key = key
        self._admit = admit
        self._refuse = refuse

    @property
    def caller(self) -> Caller:
        """Return whom a request with a right signature speaks for."""
        return self._admit()

    def sign(self, text: bytes) -> str:
        """Return the signature of a string to sign."""
        return self._key.sign(text)

    def refuse(self) -> None:
        """Count a wrong signature. Raises `Kind.THROTTLED`."""
        self._refuse()


class Entrance(ABC):
    """The part of the `Control` port that needs the state and nothing else. Any thread may call."""

    def __init__(self, sight: Sight) -> None:
        """Let callers in to what `sight` shows them."""
        self._sight = sight
        self._trust = sight.appliance.trust
        self._doorkeeper = Doorkeeper(sight.appliance)
        self._workspaces = SharedWorkspaces(sight.appliance, self._commit)
        self._draining = threading.Event()
        self._flusher = threading.Thread(target=self._flush_often, name="entrance-flush", daemon=True)
        self._flusher.start()

    # -- who --------------------------------------------------------------------------------------------------------

    @guarded
    def authenticate(self, secret: str, arrival: Arrival = INSIDE) -> Caller:
        """Return whom a bearer secret speaks for."""
        return IdentifiedCaller(self._doorkeeper.bearer(secret, arrival))

    @guarded
    def authenticate_basic(self, user: str, password: str, arrival: Arrival = INSIDE) -> Caller:
        """Return whom HTTP Basic credentials speak for."""
        return IdentifiedCaller(self._doorkeeper.basic(user, password, arrival))

    @guarded
    def authenticate_certificate(self, arrival: Arrival) -> Caller:
        """Return whom the certificate of an arrival speaks for."""
        return IdentifiedCaller(self._doorkeeper.certificate(arrival))

    def issuers(self) -> Sequence[Document]:
        """Return what somebody has to know of each issuer to log in."""
        return [
            {
                "name": issuer.name,
                "issuer": issuer.issuer,
                "audience": issuer.audience,
                "client": issuer.clients[0] if issuer.clients else None,
                "scopes": list(issuer.scopes),
            }
            for issuer in self._sight.appliance.settings.issuers
        ]

    @guarded
    def signer(self, access_key: str, session_token: str, day: str, region: str, service: str, arrival: Arrival = INSIDE) -> Signer:
        """Return what checks signatures made with an S3 key pair."""
        keeper = self._doorkeeper
        key, claim = keeper.signing_key(access_key, session_token, day, region, service, arrival)
        return KeyPair(key, partial(self._admit, claim, arrival), partial(keeper.refuse_signature, claim, arrival))

    @guarded
    def _admit(self, claim: Claim, arrival: Arrival) -> Caller:
        return IdentifiedCaller(self._doorkeeper.admit(claim, arrival))

    # -- what -------------------------------------------------------------------------------------------------------

    def workspace(self, caller: Caller, branch: str, at: str = "") -> Workspace:
        """Open a branch for a caller, or (with `at`) its tree at a commit."""
        identity = identity_behind(caller)
        try:
            name = self._sight.branch(identity, branch)
            return self._workspaces.open(identity, name, self._sight.commit(identity, at) if at else None)
        except (StoreError, TrustError, OSError) as error:
            raise as_fault(error) from error

    def deferring(self) -> AbstractContextManager[None]:
        """Run a block in which this thread does not wait for stable storage."""
        return self._sight.appliance.engine.deferring()

    def settle(self) -> None:
        """Return once what was deferred is on stable storage."""
        try:
            self._sight.appliance.engine.settle()
        except (StoreError, OSError) as error:
            raise as_fault(error) from error

    def notes(self, door: str) -> Notes:
        """Return the documents of a door."""
        return DoorNotes(self._trust, door)

    def events(self, caller: Caller, after: int) -> Iterator[Document]:
        """Yield the records after `after` (negative: from now on) as they come; yields an empty document at least once a second."""
        identity = identity_behind(caller)
        try:
            if identity.lease is None:
                self._sight.require(identity, Action.OBSERVE, "watch events")
            start = self._trust.head()[0] if after < 0 else after
        except TrustError as error:
            raise as_fault(error) from error
        return self._follow(start, identity)

    @abstractmethod
    def call(self, caller: Caller, operation: str, arguments: Mapping[str, Any]) -> Document:
        """Carry out one operation; the daemon and a gateway do it in their own ways."""

    # -- the end ----------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """End every event stream."""
        self._draining.set()

    def close(self) -> None:
        """Flush what was counted and release every workspace; nobody calls any more."""
        self._draining.set()
        self._flusher.join()
        self._workspaces.close()
        self._doorkeeper.close()

    def _commit(self, identity: Identity, branch: str, message: str) -> Document:
        arguments = {"branch": branch, "message": message} if message else {"branch": branch}
        return self.call(IdentifiedCaller(identity), "commit.make", arguments)

    def _follow(self, after: int, identity: Identity) -> Iterator[Document]:
        while not self._draining.is_set():
            self._require_standing(identity)
            fresh = list(self._trust.records(after, 1000))
            if fresh:
                after, shown = fresh[-1].sequence, self._sight.record_filter(identity)
                yield from (view_record(record) for record in fresh if shown(record))
            else:
                self._draining.wait(EVENT_WAIT)
                yield {}

    @guarded
    def _require_standing(self, identity: Identity) -> None:
        """Return while a caller may go on: what is open for long ends with the lease. Raises as `authenticate`."""
        if identity.lease is not None:
            require_usable(self._trust.lease(identity.lease.id), self._sight.appliance.now())
        if self._trust.principal(identity.principal.name).disabled:
            raise Fault(Kind.DENIED, f"{identity.principal.name} may not act any more", hint="ask the owner")

    def _flush_often(self) -> None:
        while not self._draining.wait(FLUSH_SECONDS):
            self._workspaces.flush()
            self._doorkeeper.flush()


def identity_behind(caller: Caller, operation: str = "") -> Identity:
    """Return the identity of a caller that this process let in, who is about to do an operation of the API, or something else.

    Raises `Kind.UNAUTHENTICATED`, and `Kind.DENIED` for who came with a mount credential and does not mount.
    """
    if not isinstance(caller, IdentifiedCaller):
        raise Fault(Kind.UNAUTHENTICATED, "the request was not authenticated", hint="send the secret as a bearer token")
    if caller.identity.method == MOUNTING and not operation.startswith("mount."):
        raise Fault(Kind.DENIED, "a mount credential is good for mounting, and for nothing else", hint="use the lease itself")
    return caller.identity
