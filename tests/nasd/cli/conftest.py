"""The command line against a door on a real socket, behind which a counter answers what a test prepared.

The counter serves the table of operations of the product and holds every request and every prepared answer against its schemas,
so a verb that asks for what no operation takes fails here.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from interfaces.faults import Fault, Kind
from interfaces.http import Door, HttpServer
from interfaces.port import INSIDE, Arrival, Document
from interfaces.web.pool import Pool
from nasd.cli.main import run
from nasd.operations import all_operations

OWNER = "nat1.owner.secret"
Answer = Document | Fault | Callable[[dict[str, Any]], Document]


@dataclass(frozen=True, slots=True)
class Someone:
    principal: str
    lease: str = ""


@dataclass
class Counter:
    """A control that answers what was prepared."""

    answers: dict[str, Answer] = field(default_factory=dict)
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    draining: threading.Event = field(default_factory=threading.Event)
    secrets: dict[str, str] = field(default_factory=lambda: {OWNER: "owner"})
    happenings: list[Document] = field(default_factory=list)
    repeats: bool = False
    """Answer as to a repeated request: what was shown once is not shown again."""

    def __post_init__(self) -> None:
        self.table = all_operations()

    def authenticate(self, secret: str, arrival: Arrival = INSIDE) -> Someone:
        if secret not in self.secrets:
            raise Fault(Kind.UNAUTHENTICATED, "nobody has this secret", hint="use another")
        return Someone(self.secrets[secret])

    def workspace(self, caller: Someone, branch: str) -> Any:
        raise Fault(Kind.NOT_FOUND, f"there is no branch {branch}")

    def call(self, caller: Someone, operation: str, arguments: Mapping[str, Any]) -> Document:
        given = dict(arguments)
        if key := given.pop("idempotency_key", ""):
            self.keys.append(key)
        try:
            jsonschema.validate(given, self.table[operation].parameters)
        except jsonschema.ValidationError as error:
            raise Fault(Kind.INVALID, f"{operation}: {error.message}") from error
        self.calls.append((caller.principal, operation, given))
        answer = self.answers[operation]
        if isinstance(answer, Fault):
            raise answer
        document = answer(given) if callable(answer) else answer
        jsonschema.validate(document, self.table[operation].response)
        return {name: value for name, value in document.items() if name != "secret"} if self.repeats else document

    def operations(self) -> Mapping[str, Document]:
        return {name: operation.document() for name, operation in self.table.items()}

    def events(self, caller: Someone, after: int) -> Iterator[Document]:
        yield from self.happenings

    def ready(self) -> Document:
        return {"ready": True}


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass
class Desk:
    """The command line of somebody, and the counter it reaches."""

    counter: Counter
    home: Path
    captured: pytest.CaptureFixture[str]

    def nas(self, *arguments: str) -> Result:
        """Run ``nas`` in this process."""
        self.captured.readouterr()
        code = run(arguments)
        out, err = self.captured.readouterr()
        return Result(code, out, err)

    def asked(self) -> list[tuple[str, dict[str, Any]]]:
        """Return what the counter was asked since last time, without who asked."""
        calls = [(operation, arguments) for _, operation, arguments in self.counter.calls]
        self.counter.calls.clear()
        return calls


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Counter, Path]]:
    home = tmp_path_factory.mktemp("nas")
    (home / "run").mkdir()
    (home / "owner.token").write_text(OWNER + "\n")
    counter = Counter()
    pool = Pool("http", 8)
    server = HttpServer(Door(counter, version="0", pool=pool), socket_path=home / "run" / "nasd.sock")
    server.start()
    assert server.wait_started(20)
    yield counter, home
    assert server.drain(5)
    pool.close()


@pytest.fixture
def desk(shared: tuple[Counter, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    counter, home = shared
    counter.answers = {}
    counter.calls.clear()
    counter.keys.clear()
    counter.happenings = []
    counter.repeats = False
    counter.secrets = {OWNER: "owner"}
    for name in [name for name in os.environ if name.startswith("NAS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NAS_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "no-config"))
    return Desk(counter, home, capfd)


def page(*items: Document) -> Document:
    """Return a list document."""
    return {"items": list(items), "next": None, "truncated": False}
