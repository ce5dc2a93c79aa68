"""A real appliance behind doors, for tests: store, trust, policy, runs and the `Control` the doors ask, in a temporary folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from interfaces.port import Document
from nasd.control import DaemonControl
from tests.nasd.conftest import House, build_house
from trust.model import Action, BudgetKind, PrincipalKind


@dataclass(frozen=True, slots=True)
class Started:
    """A run with its branch, its root lease and that lease's secret."""

    run: str
    branch: str
    lease: str
    secret: str


@dataclass(frozen=True, slots=True)
class HouseOfDoors:
    """The appliance, and what its doors ask."""

    house: House
    control: DaemonControl
    owner: str

    def start_run(
        self,
        role: str = "coder",
        paths: Sequence[str] = ("**",),
        actions: Sequence[str] | None = None,
        budgets: Mapping[str, int] | None = None,
        ttl: int | None = None,
    ) -> Started:
        """Start a run as the owner."""
        wanted: dict[str, object] = {"paths": tuple(paths), "ttl": ttl}
        if actions is not None:
            wanted["actions"] = frozenset(Action(action) for action in actions)
        if budgets is not None:
            wanted["budgets"] = {BudgetKind(kind): amount for kind, amount in budgets.items()}
        run, secret = self.house.start(role, **wanted)
        return Started(run.run, run.branch, run.lease, secret)

    def issue_token(self, name: str, kind: str = "human", roles: str = "") -> str:
        """Make a principal when it is not there, and return the secret of a token of its own."""
        self._ensure_principal(name, kind, roles)
        return self.house.trust.issue_token(name, "test", None, self.house.appliance.now())[1]

    def key_pair(self, name: str, kind: str = "service") -> tuple[str, str]:
        """Return the S3 access key and secret of a principal, which is made when it is not there."""
        self._ensure_principal(name, kind, "")
        token = self.house.trust.issue_token(name, "test", None, self.house.appliance.now())[0]
        return self.house.trust.token_key_pair(token.id)

    def call(self, secret: str, operation: str, arguments: Document | None = None) -> Document:
        """Carry out an operation for the holder of a secret."""
        return self.control.call(self.control.authenticate(secret), operation, arguments or {})

    def _ensure_principal(self, name: str, kind: str, roles: str) -> None:
        trust = self.house.trust
        if name not in {principal.name for principal in trust.principals()}:
            trust.add_principal(name, PrincipalKind(kind), self.house.appliance.now(), {"roles": roles} if roles else {})


@contextmanager
def open_house(folder: Path, engine: str = "git", policy: str | None = None) -> Iterator[HouseOfDoors]:
    """Run the block with an appliance whose clock goes on; `policy` is the text of another policy than the default one."""
    house = build_house(folder / "home", engine, policy, clock=time.time)
    owner = house.trust.issue_token("owner", "test", None, house.appliance.now())[1]
    control = DaemonControl(house.desk, lambda: {"ready": True, "home": os.fspath(folder)})
    try:
        yield HouseOfDoors(house, control, owner)
    finally:
        control.close()
        house.appliance.close()
