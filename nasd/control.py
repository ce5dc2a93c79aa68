"""The `Control` port as the daemon has it: who is calling, may they, and then the operation.

1. Arguments are checked against the operation's schema before anything else looks at them.
2. Every error of the contexts leaves as a fault; what is nobody's fault is logged with its traceback and told as `Kind.INTERNAL`.
3. Gateways ask for operations through the link (`answer`): the caller they let in is looked up again here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from interfaces.faults import Fault, Kind
from interfaces.port import Caller, Document
from nasd.desk import Desk
from nasd.entrance import Entrance, IdentifiedCaller, identity_behind
from nasd.faults import as_fault
from nasd.idempotency import Idempotency
from nasd.identities.limits import LIMITED_OPERATIONS
from nasd.operations import all_operations
from nasd.operations.operation import Operation
from nasd.workspaces import identity_of
from store.errors import StoreError
from trust.errors import TrustError
from trust.model import Identity, LeaseId

log = logging.getLogger("nasd.control")


class DaemonControl(Entrance):
    """Everything the doors ask of the daemon. Any thread may call."""

    def __init__(self, desk: Desk, ready: Callable[[], Document]) -> None:
        """Answer from `desk`; `ready` tells whether state is open and recovered."""
        super().__init__(desk)
        self._desk = desk
        self._ready = ready
        self._operations = all_operations()
        self._validators = {name: Draft202012Validator(operation.parameters) for name, operation in self._operations.items()}
        self._idempotency = Idempotency(desk.appliance.trust, desk.appliance.now)

    def call(self, caller: Caller, operation: str, arguments: Mapping[str, Any]) -> Document:
        """Carry out one operation."""
        identity = identity_behind(caller, operation)
        if identity.limits is not None and operation not in LIMITED_OPERATIONS:
            raise Fault(Kind.DENIED, f"{operation}: an app password is for files alone", hint="use a token of your own: `nas login`")
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

    def ready(self) -> Document:
        """Return whether state is open and recovered."""
        return self._ready()

    def answer(self, question: Document) -> Document:
        """Carry out the operation a gateway asks for, for the caller it let in."""
        try:
            identity = identity_of(self._desk.appliance, **question["caller"])
        except TrustError as error:
            raise as_fault(error) from error
        return self.call(IdentifiedCaller(identity), question["operation"], question["arguments"])

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
