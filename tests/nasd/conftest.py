"""An appliance in a temporary folder, opened in this process over each engine that can be, with a clock the test moves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nasd.authority import policy_in_force
from nasd.broker.supervisor import Broker
from nasd.config import Settings
from nasd.desk import Desk
from nasd.exposure import describe_doors
from nasd.gates import Gates
from nasd.jobs import SERVICE, Jobs
from nasd.mounts import Mounts
from nasd.notary import Notary
from nasd.outward import Outward
from nasd.policy_source import POLICY_PATH, adopt_from
from nasd.proposals import Proposals
from nasd.reclaim import Reclaim
from nasd.reconcile import Reconciliation
from nasd.relabelling import LOWERING, Relabelling
from nasd.run_request import Request
from nasd.runs import MAIN, Run, Runs
from nasd.trees import node_at
from nasd.wiring import Appliance
from nasd.workspace import BranchWorkspace
from nasd.workspaces import open_workspace
from store import open_store
from store.model import ROOT, Access, Note, Provenance
from trust.model import Identity, PrincipalKind
from trust.policy import default_policy
from trust.service import Trust

START = 1_800_000_000.0


@dataclass
class House:
    """An opened appliance with its services, its owner, and a clock that stands until `pass_time`."""

    appliance: Appliance
    now: list[float] = field(default_factory=lambda: [START])

    def __post_init__(self) -> None:
        self.runs = Runs(self.appliance)
        self.proposals = Proposals(self.appliance, self.runs, lambda commit: adopt_from(self.appliance, commit))
        self.gates = Gates(self.appliance, self.proposals)
        for kind in LOWERING:
            self.gates.register(kind, Relabelling(self.appliance))
        self.mounts = Mounts(self.appliance, self.runs.is_active)
        self.jobs = Jobs(self.appliance, self.runs, self.gates, self.mounts)
        self.reclaim = Reclaim(self.appliance, self.runs)
        doors = describe_doors(self.appliance.settings, 8420)
        settings = self.appliance.settings
        self.broker = Broker(settings.broker_socket, settings.log / "broker.log", None)
        self.outward = Outward(self.appliance, self.broker)
        self.notary = Notary(self.appliance)
        self.desk = Desk(
            self.appliance,
            self.runs,
            self.proposals,
            self.gates,
            self.mounts,
            self.reclaim,
            self.outward,
            lambda: {"doors": doors},
            lambda: None,
            self.notary,
        )
        self.reconciliation = Reconciliation(self.appliance, self.runs, self.proposals, self.gates)

    @property
    def trust(self) -> Trust:
        return self.appliance.trust

    @property
    def owner(self) -> Identity:
        principal = self.trust.principal("owner")
        return Identity(principal, self.trust.roles(principal))

    def pass_time(self, seconds: float) -> None:
        self.now[0] += seconds

    def start(self, role: str = "coder", **wanted: object) -> tuple[Run, str]:
        """Start a run and return it with its secret."""
        document = self.runs.start(self.owner, Request(role, **wanted))  # type: ignore[arg-type]
        return self.runs.find(document["run"]), document["secret"]

    def holder(self, secret: str) -> Identity:
        return self.trust.authenticate(secret, self.appliance.now())

    def workspace(self, run: Run, secret: str) -> BranchWorkspace:
        identity = self.holder(secret)
        return open_workspace(self.appliance, identity, run.branch, lambda message: self.runs.commit(run, identity, message))

    def write(self, run: Run, files: dict[str, bytes | None]) -> None:
        """Change files on a run's branch below the rights of anybody; None deletes."""
        working = self.appliance.engine.working(run.branch)
        for path, content in files.items():
            parent, _, name = path.encode().rpartition(b"/")
            node = ROOT
            for part in parent.split(b"/") if parent else ():
                known = dict(working.list(node))
                node = known[part].node if part in known else working.mkdir(node, part, 0o755).node
            if content is None:
                working.unlink(node, name)
                continue
            known = dict(working.list(node))
            target = known[name].node if name in known else working.create(node, name, 0o644).node
            handle = working.open(target, Access(read=False, write=True, truncate=True))
            handle.write(0, content)
            handle.close()
        working.close()

    def read_main(self, path: str) -> bytes:
        tree = self.appliance.engine.view(self.appliance.engine.branch(MAIN).head)
        handle = tree.open(node_at(tree, path.encode()), Access())
        try:
            return handle.read(0, 1 << 20)
        finally:
            handle.close()

    def records(self, kind: str) -> list[dict[str, object]]:
        return [dict(record.body) for record in self.trust.records(kind=kind)]


SEED = {
    "README.md": b"hello\n",
    "src/a.py": b"a = 1\n",
    "src/b.py": b"b = 1\n",
    "secret/plan.txt": b"the plan\n",
    "docs/one.md": b"1\n",
}


def build_house(folder: Path, engine: str, policy: str | None = None, clock: Callable[[], float] | None = None) -> House:
    """Make an appliance like `nasd.setup` does, over a named engine, with `SEED` on main; without a `clock` time stands still."""
    settings = Settings(home=folder)
    for part in (settings.store, settings.trust, settings.run, settings.log):
        part.mkdir(parents=True)
    now = [START]
    appliance = Appliance(settings, open_store(settings.store, engine), Trust.open(settings.trust), clock or (lambda: now[0]), os.urandom)
    appliance.trust.add_principal("owner", PrincipalKind.HUMAN, int(START), {"roles": "owner"})
    appliance.trust.add_principal(SERVICE, PrincipalKind.SERVICE, int(START))
    text = policy or default_policy()
    appliance.trust.adopt_policy(text, "policy.yaml", int(START))
    appliance.engine.create_branch("seed", None, int(START))
    house = House(appliance, now)
    seed = Run("seed", "owner", "seed", "owner", "", "", "", int(START))
    house.write(seed, SEED | {POLICY_PATH.decode(): text.encode()})
    appliance.engine.commit("seed", Note("seed", Provenance("owner"), int(START)))
    head = appliance.engine.branch("seed").head
    appliance.engine.create_branch(MAIN, head, int(START), protected=True)
    appliance.engine.delete_branch("seed", head)
    assert policy_in_force(appliance.trust).hash == appliance.trust.adopted_policy()[2]
    return house


ENGINES = ["reference", "git"]


@pytest.fixture(params=ENGINES)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    built = build_house(tmp_path / "home", request.param)
    yield built
    built.appliance.close()
