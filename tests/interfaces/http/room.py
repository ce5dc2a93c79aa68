"""A control with a few operations, for what has nothing to do with files: one secret, no policy, no state."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import INSIDE, Arrival, Document

SECRET = "anl1-secret-of-a-lease"


@dataclass(frozen=True, slots=True)
class Someone:
    principal: str = "builder"
    lease: str = "lease-1"


def operation(method: str, path: str, properties: Mapping[str, Any] | None = None, **more: Any) -> Document:
    document: Document = {
        "method": method,
        "path": path,
        "summary": f"{method} {path}",
        "response": {"type": "object"},
        "status": 200,
        "effect": method != "GET",
    }
    document["parameters"] = {"type": "object", "properties": dict(properties or {}), "required": more.pop("required", [])}
    return document | more


OPERATIONS: dict[str, Document] = {
    "echo.show": operation(
        "GET",
        "/v1/echoes/{name}",
        {
            "name": {"type": "string"},
            "limit": {"type": "integer"},
            "deep": {"type": "boolean"},
            "tag": {"type": "array", "items": {"type": "string"}},
        },
    ),
    "echo.list": operation("GET", "/v1/echoes/all"),
    "echo.make": operation(
        "POST", "/v1/echoes", {"name": {"type": "string"}, "if_match": {"type": "string"}}, status=201, required=["name"]
    ),
    "echo.refuse": operation("POST", "/v1/echoes/{name}/refuse", {"name": {"type": "string"}}),
    "echo.break": operation("POST", "/v1/echoes/{name}/break", {"name": {"type": "string"}}),
    "history.log": operation("GET", "/v1/branches/{branch}/commits", {"branch": {"type": "string"}}),
}


@dataclass
class Room:
    """The control."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    happenings: queue.Queue[Document] = field(default_factory=queue.Queue)
    draining: threading.Event = field(default_factory=threading.Event)
    ready_now: bool = True

    def authenticate(self, secret: str, arrival: Arrival = INSIDE) -> Someone:
        if secret == "expired":
            raise Fault(Kind.EXPIRED, "the lease has expired", hint="start another run")
        if secret != SECRET:
            raise Fault(Kind.UNAUTHENTICATED, "nobody has this secret")
        return Someone()

    def authenticate_basic(self, user: str, password: str, arrival: Arrival = INSIDE) -> Someone:
        if user != Someone().lease:
            raise Fault(Kind.UNAUTHENTICATED, "nobody has this name")
        return self.authenticate(password)

    def call(self, caller: Someone, operation: str, arguments: Mapping[str, Any]) -> Document:
        self.calls.append((operation, dict(arguments)))
        if operation == "echo.refuse":
            raise Fault(
                Kind.GATED, "the policy asks a person", hint="wait for the gate", policy="big-ones (policy.yaml:7:3)", gate="gate-1"
            )
        if operation == "echo.break":
            raise ZeroDivisionError("a defect with a secret detail")
        return {"operation": operation, "arguments": dict(arguments)}

    def operations(self) -> Mapping[str, Document]:
        return OPERATIONS

    def events(self, caller: Someone, after: int) -> Iterator[Document]:
        yield {"sequence": after + 1, "kind": "run.started", "run": "run-1"}
        while not self.draining.is_set():
            try:
                yield self.happenings.get(timeout=0.05)
            except queue.Empty:
                yield {}

    def ready(self) -> Document:
        return {"ready": self.ready_now}
