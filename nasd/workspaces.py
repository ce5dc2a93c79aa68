"""Opening a branch for somebody: identity and branch -> workspace."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Any

from interfaces.port import Document
from nasd.authority import Authority
from nasd.meter import Meter
from nasd.protected import ProtectedTree
from nasd.wiring import Appliance
from nasd.workspace import BranchWorkspace
from store.model import Space
from trust.model import Identity, LeaseId


def _protected(appliance: Appliance, branch: str) -> ProtectedTree:
    usage = shutil.disk_usage(appliance.settings.store)
    return ProtectedTree(appliance.engine, branch, Space(usage.total, usage.free))


def identity_of(appliance: Appliance, *, principal: str = "", lease: str = "") -> Identity:
    """Return the identity of a lease, or of a principal acting on its own. Raises `trust.errors.Unknown`."""
    held = appliance.trust.lease(LeaseId(lease)) if lease else None
    who = appliance.trust.principal(held.principal if held else principal)
    return Identity(who, appliance.trust.roles(who), None, held)


def open_workspace(appliance: Appliance, identity: Identity, branch: str, commit: Callable[[str], Document]) -> BranchWorkspace:
    """Return a workspace on a branch; `commit` makes a commit with a message. Raises `store.errors.NotFound`."""
    protected = appliance.engine.branch(branch).protected
    authority = Authority(appliance.trust, appliance.clock, identity, protected=protected)

    def note_reads(batch: Mapping[str, Any]) -> None:
        appliance.trust.state("reads", identity, {"branch": branch} | dict(batch), appliance.now())

    meter = Meter(appliance.trust, identity.lease)
    working = _protected(appliance, branch) if protected else appliance.engine.working(branch)
    return BranchWorkspace(branch, working, authority, meter, commit=commit, note_reads=note_reads)
