"""The `Control` port: who is calling, may they, and then the operation.

1. Arguments are checked against the operation's schema before anything else looks at them.
2. Every error of the contexts leaves as a fault; what is nobody's fault is logged with its traceback and told as `Kind.INTERNAL`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from interfaces.faults import Fault, Kind
from interfaces.port import Caller, Document, Workspace
from nasd.desk import Desk
from nasd.faults import as_fault
from nasd.idempotency import Idempotency
from nasd.operations import all_operations
from nasd.operations.operation import Operation
from nasd.runs import MAIN
from nasd.views import view_record
from nasd.workspaces import open_workspace
from store.errors import StoreError
from trust.errors import TrustError
from trust.model import Action, Identity, LeaseId

EVENT_WAIT = 0.25
log = logging.getLogger("nasd.control")


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


class DaemonControl:
    """Everything the doors ask of the daemon. Any thread may call."""

    def __init__(self, desk: Desk, ready: Callable[[], Document]) -> None:
        """Answer from `desk`; `ready` tells whether state is open and recovered."""
        self._desk = desk
        self._ready = ready
        self._operations = all_operations()
        self._validators = {name: Draft202012Validator(operation.parameters) for name, operation in self._operations.items()}
        self._idempotency = Idempotency(desk.appliance.trust)
        self._draining = threading.Event()

    def authenticate(self, secret: str) -> Caller:
        """Return whom a bearer secret speaks for."""
        try:
            return IdentifiedCaller(self._desk.appliance.trust.authenticate(secret, self._desk.appliance.now()))
        except TrustError as error:
            raise as_fault(error) from error

    def workspace(self, caller: Caller, branch: str) -> Workspace:
        """Open a branch for a caller."""
        identity = _identity(caller)
        try:
            name = self._desk.branch(identity, branch)
            return open_workspace(self._desk.appliance, identity, name, lambda message: self._commit(identity, name, message))
        except (StoreError, TrustError, OSError) as error:
            raise as_fault(error) from error

    def call(self, caller: Caller, operation: str, arguments: Mapping[str, Any]) -> Document:
        """Carry out one operation."""
        identity = _identity(caller)
        known = self._operations.get(operation)
        if known is None:
            raise Fault(Kind.NOT_FOUND, f"{operation}: no such operation", hint="/openapi.json lists them")
        given = dict(arguments)
        key = given.pop("idempotency_key", None)
        self._check(known, given)
        if key is not None and known.effect:
            request = {"operation": operation, "arguments": given, "lease": caller.lease}
            answer = self._idempotency.run(caller.principal, str(key), request, lambda: self._run(known, identity, given))
            return self._with_secret(known, answer)
        return self._run(known, identity, given)

    def operations(self) -> Mapping[str, Document]:
        """Return the description of every operation."""
        return {name: operation.document() for name, operation in self._operations.items()}

    def events(self, caller: Caller, after: int) -> Iterator[Document]:
        """Yield the records after `after` (negative: from now on) as they come; yields an empty document at least once a second."""
        identity = _identity(caller)
        run = identity.lease.run if identity.lease else None
        try:
            if run is None:
                self._desk.require(identity, Action.OBSERVE, "watch events")
            start = self._desk.appliance.trust.head()[0] if after < 0 else after
        except TrustError as error:
            raise as_fault(error) from error
        return self._follow(start, run)

    def ready(self) -> Document:
        """Return whether state is open and recovered."""
        return self._ready()

    def drain(self) -> None:
        """End every event stream."""
        self._draining.set()

    def _follow(self, after: int, run: str | None) -> Iterator[Document]:
        trust = self._desk.appliance.trust
        while not self._draining.is_set():
            fresh = list(trust.records(after, 1000))
            for record in fresh:
                after = record.sequence
                if run in (None, record.run):
                    yield view_record(record)
            if not fresh:
                self._draining.wait(EVENT_WAIT)
                yield {}

    def _with_secret(self, operation: Operation, answer: Document) -> Document:
        """Give a repeated answer its lease secret back: it is derived, not stored, so the same caller may have it again."""
        if "secret" in operation.response["properties"] and "secret" not in answer and "lease" in answer:
            return answer | {"secret": self._desk.appliance.trust.lease_secret(LeaseId(answer["lease"]))}
        return answer

    def _check(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        error = next(self._validators[operation.id].iter_errors(arguments), None)
        if error is not None:
            place = "".join(f".{part}" for part in error.absolute_path).lstrip(".")
            raise Fault(
                Kind.INVALID,
                f"{operation.id}: {place + ': ' if place else ''}{error.message}",
                hint="/openapi.json describes the arguments",
            )

    def _run(self, operation: Operation, identity: Identity, arguments: Mapping[str, Any]) -> Document:
        try:
            return operation.handle(self._desk, identity, arguments)
        except Fault:
            raise
        except (StoreError, TrustError, OSError) as error:
            fault = as_fault(error)
            if fault.kind is Kind.INTERNAL:
                log.exception("%s failed", operation.id)
            raise fault from error

    def _commit(self, identity: Identity, branch: str, message: str) -> Document:
        if branch == MAIN:
            raise Fault(Kind.READ_ONLY, f"{MAIN} moves by merges only", hint="work in a run and propose it")
        return self._desk.runs.commit(self._desk.own_run(identity, branch, Action.WRITE), identity, message)


def _identity(caller: Caller) -> Identity:
    if not isinstance(caller, IdentifiedCaller):
        raise Fault(Kind.UNAUTHENTICATED, "the request was not authenticated", hint="send the secret as a bearer token")
    return caller.identity
