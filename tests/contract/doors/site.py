"""A served appliance: the installed program with its daemon and gateway processes, and the port opened beside them in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interfaces.port import Document
from nasd.config import Settings
from nasd.gateway import GatewayControl
from nasd.link import LinkClient
from nasd.runs import Runs
from nasd.sight import Sight
from nasd.wiring import Appliance, open_appliance
from store import ROOT, Access, EntryKind, NodeId, Working
from tests.contract.doors.leases import EVERYTHING, LEAF
from tests.contract.doors.model import folder_of, seed
from tests.e2e.conftest import Nas
from trust.service import Trust

ROOTS = {"work": LEAF, "hidden": LEAF, "keys": "id_rsa"}
"""The directories on main, with the name that the operations work on."""


@dataclass(frozen=True, slots=True)
class Held:
    """A lease on a branch of its own, and its secret."""

    run: str
    branch: str
    lease: str
    secret: str


class Site:
    """One served appliance."""

    def __init__(self, nas: Nas) -> None:
        self.nas = nas
        self.settings = Settings(home=nas.home)
        self._appliance = open_appliance(self.settings, "gateway")
        self.control = GatewayControl(Sight(self._appliance, Runs(self._appliance)), LinkClient(self.settings.link))
        self._owner = self.control.authenticate(nas.token())

    @property
    def doors(self) -> Mapping[str, str]:
        """Return the address of each door."""
        found: Mapping[str, str] = self.status()["doors"]
        return found

    def status(self) -> Document:
        """Return what ``nas status --json`` prints."""
        return self.call("status.show")

    def call(self, operation: str, **arguments: Any) -> Document:
        """Carry out an operation as the owner."""
        return self.control.call(self._owner, operation, arguments)

    def start(
        self,
        paths: Sequence[str] = ("**",),
        actions: Sequence[str] = EVERYTHING,
        budgets: Mapping[str, int] | None = None,
        lives: int | None = None,
    ) -> Held:
        """Start a run and return a lease that was narrowed to these terms: it can end while the run goes on."""
        run = self.call("run.start", role="coder")
        wanted: dict[str, Any] = {"lease": run["lease"], "paths": [*paths], "actions": [*actions]}
        wanted |= {"budgets": dict(budgets)} if budgets is not None else {}
        wanted |= {"ttl": lives} if lives is not None else {}
        lease = self.call("lease.narrow", **wanted)
        return Held(run["run"], run["branch"], lease["lease"], lease["secret"])

    def credentials(self, held: Held, door: str) -> Document:
        """Return what ``nas lease credentials`` prints for a door."""
        return self.call("lease.credentials", lease=held.lease, **{"for": door})

    def revoke(self, held: Held) -> None:
        """Take a lease back."""
        self.call("lease.revoke", lease=held.lease, reason="the test took it back")

    def close(self) -> None:
        """Leave the appliance; what was counted here is written."""
        self.control.close()
        self._appliance.close()


@contextmanager
def open_site(folder: Path, *, workers: int = 1) -> Iterator[Site]:
    """Run the block with a served appliance whose main holds what the operations work on."""
    nas = Nas(folder)
    nas.environment["NAS_WORKERS"] = str(workers)
    nas.init("--import", str(_plant(folder / "tree")))
    try:
        nas.serve()
        with closing(Site(nas)) as site:
            yield site
    finally:
        nas.stop()


@dataclass(frozen=True, slots=True)
class Remains:
    """What a stopped appliance left on disk: its record and its branches."""

    appliance: Appliance

    @property
    def trust(self) -> Trust:
        """Return the record and the leases."""
        return self.appliance.trust

    def files(self, branch: str) -> dict[str, bytes]:
        """Return every file of a branch, as it stands, by path."""
        with closing(self.appliance.engine.working(branch)) as working:
            return {path.decode(): content for path, content in _walk(working, NodeId(ROOT), b"")}


@contextmanager
def open_remains(home: Path) -> Iterator[Remains]:
    """Run the block with what a stopped appliance left."""
    appliance = open_appliance(Settings(home=home), "owner")
    try:
        yield Remains(appliance)
    finally:
        appliance.close()


def _walk(working: Working, node: NodeId, path: bytes) -> Iterator[tuple[bytes, bytes]]:
    for name, attributes in working.list(node):
        below = path + b"/" + name if path else name
        if attributes.kind is EntryKind.DIRECTORY:
            yield from _walk(working, attributes.node, below)
        elif attributes.kind is EntryKind.FILE:
            with closing(working.open(attributes.node, Access())) as handle:
                yield below, handle.read(0, attributes.size)


def _plant(tree: Path) -> Path:
    for root, leaf in ROOTS.items():
        for operation, files in seed(leaf).items():
            for name, content in files.items():
                path = tree / folder_of(root, operation) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    return tree
