"""Opening branches for somebody: identity and branch -> workspace, fresh or shared by the requests of one process."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

from interfaces.faults import Fault
from interfaces.port import Document
from nasd.authority import Authority
from nasd.identities.limits import describe_limits, read_limits
from nasd.meter import Meter
from nasd.protected import ProtectedTree
from nasd.reading import ReadQuestions
from nasd.wiring import Appliance
from nasd.workspace import BranchWorkspace
from store.contract import Tree
from store.model import CommitId, Space
from trust.model import Identity, LeaseId, TokenId

REST_SECONDS = 30.0
"""How long a shared workspace stays open after its last use."""
log = logging.getLogger("nasd.workspaces")

Commit = Callable[[Identity, str, str], Document]
"""Commits a branch for somebody, with a message."""


def identity_of(
    appliance: Appliance,
    *,
    principal: str = "",
    lease: str = "",
    token: str = "",
    door: str = "",
    method: str = "",
    limits: Mapping[str, Any] | None = None,
) -> Identity:
    """Return the identity of a lease, or of a principal acting on its own. Raises `trust.errors.Unknown`."""
    held = appliance.trust.lease(LeaseId(lease)) if lease else None
    who = appliance.trust.principal(held.principal if held else principal)
    narrowed = read_limits(limits) if limits else None
    return Identity(who, appliance.trust.roles(who), TokenId(token) if token else None, held, door, method, narrowed)


def describe_identity(identity: Identity) -> Document:
    """Return what `identity_of` makes the same identity of, in another process: names and limits, no secret."""
    return {
        "principal": identity.principal.name,
        "lease": identity.lease.id if identity.lease else "",
        "token": identity.token or "",
        "door": identity.door,
        "method": identity.method,
        "limits": describe_limits(identity.limits) if identity.limits else None,
    }


def open_workspace(
    appliance: Appliance,
    identity: Identity,
    branch: str,
    commit: Callable[[str], Document],
    *,
    at: CommitId | None = None,
    kind: type[BranchWorkspace] = BranchWorkspace,
) -> BranchWorkspace:
    """Return a workspace on a branch, or on its tree at a commit; `commit` makes a commit with a message.

    Raises `store.errors.NotFound`.
    """
    protected = at is not None or appliance.engine.branch(branch).protected
    authority = Authority(appliance.trust, appliance.clock, identity, protected=protected, answer=ReadQuestions(appliance).answer)

    def note_reads(batch: Mapping[str, Any]) -> None:
        commit = at or appliance.engine.branch(branch).head
        appliance.trust.state("reads", identity, {"branch": branch, "commit": commit} | dict(batch), appliance.now())

    def committed() -> Tree:
        return appliance.engine.view(at or appliance.engine.branch(branch).head)

    meter = Meter(appliance.trust, identity.lease)
    working = _reading(appliance, branch, at) if protected else appliance.engine.working(branch)
    return kind(branch, working, authority, meter, commit=commit, committed=committed, note_reads=note_reads)


def _reading(appliance: Appliance, branch: str, at: CommitId | None) -> ProtectedTree:
    usage = shutil.disk_usage(appliance.settings.store)
    return ProtectedTree(appliance.engine, branch, Space(usage.total, usage.free), at)


_Holder = tuple[Hashable, ...]


def _holder(identity: Identity) -> _Holder:
    """Return what two requests have in common that may use one workspace: whoever it is, and everything that it is narrowed to."""
    scope, limits = identity.scope, identity.limits
    door = identity.door if scope is not None and scope.doors is not None else ""
    narrowed = (limits.paths, limits.actions, limits.doors, limits.expires) if limits else ()
    return (identity.principal.name, identity.lease.id if identity.lease else "", door, *narrowed)


class SharedWorkspace(BranchWorkspace):
    """A workspace that several requests use at once: closing it is saying that one of them is done."""

    users = 0
    rested = 0.0
    leave: Callable[[SharedWorkspace], None]

    def close(self) -> None:
        """Count one use less. The workspace itself closes when it has rested (`SharedWorkspaces`)."""
        self.leave(self)


class SharedWorkspaces:
    """The open workspaces of one process, by holder and branch. Any thread may call."""

    def __init__(self, appliance: Appliance, commit: Commit) -> None:
        """Open branches of `appliance`; `commit` commits for who works on one."""
        self._appliance = appliance
        self._commit = commit
        self._open: dict[tuple[_Holder, str, CommitId | None], SharedWorkspace] = {}
        self._lock = threading.Lock()

    def open(self, identity: Identity, branch: str, at: CommitId | None) -> BranchWorkspace:
        """Return the workspace of a holder on a branch, opening it when it is not open. Raises `store.errors.NotFound`."""
        key = (_holder(identity), branch, at)
        with self._lock:
            found = self._open.get(key)
            if found is None:
                found = self._open[key] = self._start(identity, branch, at)
            found.users += 1
        return found

    def _start(self, identity: Identity, branch: str, at: CommitId | None) -> SharedWorkspace:
        commit = partial(self._commit, identity, branch)
        opened = open_workspace(self._appliance, identity, branch, commit, at=at, kind=SharedWorkspace)
        assert isinstance(opened, SharedWorkspace)
        opened.leave = self._count_leaving
        return opened

    def _count_leaving(self, workspace: SharedWorkspace) -> None:
        with self._lock:
            workspace.users -= 1
            workspace.rested = time.monotonic()

    def flush(self) -> None:
        """Write what was counted, and close what has rested."""
        now = time.monotonic()
        with self._lock:
            over = [key for key, each in self._open.items() if each.users <= 0 and now - each.rested > REST_SECONDS]
            closing = [self._open.pop(key) for key in over]
            staying = list(self._open.values())
        for workspace in staying:
            _tolerate(workspace.flush)
        for workspace in closing:
            _tolerate(partial(BranchWorkspace.close, workspace))

    def close(self) -> None:
        """Close everything; nobody uses it any more."""
        with self._lock:
            closing, self._open = list(self._open.values()), {}
        for workspace in closing:
            _tolerate(partial(BranchWorkspace.close, workspace))


def _tolerate(work: Callable[[], None]) -> None:
    """Do work for one workspace whose failure must not keep the others from theirs; the log tells it."""
    try:
        work()
    except Fault as fault:
        log.warning("cannot write what was counted: %s", fault.message)
