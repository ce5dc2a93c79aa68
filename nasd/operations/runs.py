"""Runs: start, list, show, end, check out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.desk import Desk, limited
from nasd.durations import render_time
from nasd.manifest import words
from nasd.operations.operation import (
    COUNT,
    LIMIT,
    MAYBE_TEXT,
    NAME,
    TEXT,
    TEXTS,
    TIME,
    Arguments,
    Operation,
    actions_argument,
    gives,
    gives_list,
    seconds,
    takes,
)
from nasd.operations.scopes import SCOPE, read_budgets, read_limits
from nasd.run_request import Request
from nasd.runs import Run
from nasd.views import view_change, view_lease
from store.errors import NotFound
from trust.labels import DEFAULT
from trust.model import Action, Identity, LeaseId

_STATES = ["active", "ended", "expired", "revoked", "trashed", "removed"]


def _start(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    document = desk.runs.start(identity, _request(arguments))
    for name in ("created", "ended", "expires", "trashed"):
        document[name] = render_time(document.get(name))
    return document


def _request(arguments: Arguments) -> Request:
    limits = read_limits(arguments)
    return Request(
        role=arguments["role"],
        paths=tuple(arguments.get("paths") or ("**",)),
        actions=actions_argument(arguments.get("actions")) | ({Action.EGRESS} if limits.get("destinations") else set()),
        ttl=seconds(arguments["ttl"], "ttl") if "ttl" in arguments else None,
        purpose=arguments.get("purpose", ""),
        budgets=read_budgets(arguments),
        gate=arguments.get("gate"),
        **limits,
    )


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    state, role = arguments.get("state"), arguments.get("role")
    runs = [run for run in desk.visible_runs(identity) if state in (None, _state(run)) and role in (None, run.role)]
    return limited([_view(run) for run in runs], arguments, "run")


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.run(identity, arguments["run"])
    appliance = desk.appliance
    document = _view(run) | {
        "lease_detail": view_lease(appliance.trust.lease(LeaseId(run.lease)), appliance.now()),
        "proposals": [proposal.proposal for proposal in desk.proposals.all() if proposal.run == run.run],
        "taint": _view_taint(desk, run),
        "mounts": [desk.mounts.document(mount) for mount in desk.mounts.all() if mount.run == run.run],
    }
    return document | _branch_state(desk, identity, run)


def _view_taint(desk: Desk, run: Run) -> Document:
    """Return the join of what a run has read, and the reads that raised it, the first ones."""
    trust = desk.appliance.trust
    label = trust.ledger.taint(run.run)
    because = [] if label == DEFAULT else [dict(record.body) for record in trust.records(kind="taint", run=run.run)]
    return words(label) | {"because": [{"path": each["path"], "label": each["label"]} for each in because]}


def _branch_state(desk: Desk, identity: Identity, run: Run) -> Document:
    try:
        head = desk.appliance.engine.branch(run.branch).head
    except NotFound:
        return {"head": None, "uncommitted": [], "left_out": []}
    working = desk.appliance.engine.working(run.branch)
    try:
        changes = desk.visible(identity, working.changes())
        return {"head": head, "uncommitted": [view_change(change) for change in changes]}
    finally:
        working.close()


def _end(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.own_run(identity, arguments["run"], None)
    if identity.lease is not None and identity.lease.id != run.lease:
        raise Fault(Kind.DENIED, f"{identity.lease.id} was narrowed from the run's lease and does not end it", hint="the run's lease can")
    desk.mounts.remove_run(run.run)
    return desk.runs.end(run, identity)


def _checkout(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = desk.run(identity, arguments["run"])
    if identity.lease is not None:
        raise Fault(Kind.DENIED, "a lease cannot write to the host's own directories", hint="mount the branch, or read it over HTTP")
    head = desk.appliance.engine.branch(run.branch).head
    files = desk.appliance.engine.export_directory(head, absolute(arguments["directory"]), lambda *_: None)
    return {"run": run.run, "directory": arguments["directory"], "commit": head, "files": files}


def absolute(text: str) -> Path:
    """Return a directory argument as a path. Raises `Kind.INVALID` for a relative one."""
    path = Path(text)
    if not path.is_absolute():
        raise Fault(Kind.INVALID, f"{text} is not an absolute path", hint="the daemon has another working directory than you")
    return path


def _state(run: Run) -> str:
    return "trashed" if run.trashed is not None and run.state != "removed" else run.state


def _view(run: Run) -> dict[str, Any]:
    return {
        "run": run.run,
        "role": run.role,
        "branch": run.branch,
        "owner": run.owner,
        "state": _state(run),
        "purpose": run.purpose,
        "lease": run.lease,
        "base": run.base,
        "created": render_time(run.created),
        "ended": render_time(run.ended),
        "trashed": render_time(run.trashed),
        "reason": run.reason,
    }


_RUN = {
    "run": NAME,
    "role": NAME,
    "branch": NAME,
    "state": {"enum": _STATES},
    "created": TIME,
    "ended": TIME,
    "purpose": TEXT,
    "lease": NAME,
}

OPERATIONS = (
    Operation(
        "run.start",
        "POST",
        "/v1/runs",
        "Start a run: a branch of its own and a lease, whose secret is shown this once",
        _start,
        takes({"role": NAME}, gate=NAME, **SCOPE),
        gives(run=NAME, branch=NAME, lease=NAME, secret=TEXT, role=NAME, base=NAME, expires=TIME, paths=TEXTS, actions=TEXTS),
        effect=True,
        status=201,
    ),
    Operation(
        "run.list",
        "GET",
        "/v1/runs",
        "List runs",
        _list,
        takes(state={"enum": _STATES}, role=NAME, limit=LIMIT, cursor=NAME),
        gives_list(**_RUN),
    ),
    Operation(
        "run.show",
        "GET",
        "/v1/runs/{run}",
        "Show a run with what it has read and not committed",
        _show,
        takes({"run": NAME}),
        gives(**_RUN, taint=gives(origin=NAME, sensitivity=NAME, because={"type": "array", "items": gives(path=TEXT, label=NAME)})),
    ),
    Operation(
        "run.end",
        "POST",
        "/v1/runs/{run}/end",
        "End a run: commit what is left, take back its lease, keep its branch",
        _end,
        takes({"run": NAME}),
        gives(run=NAME, state=NAME, commit=MAYBE_TEXT, left_out=TEXTS),
        effect=True,
    ),
    Operation(
        "checkout.make",
        "POST",
        "/v1/runs/{run}/checkout",
        "Write a run's branch into a directory of the daemon's machine",
        _checkout,
        takes({"run": NAME, "directory": TEXT}),
        gives(directory=TEXT, commit=NAME, files=COUNT),
        effect=True,
    ),
)
