"""The appliance itself: status, mounts, garbage collection, stopping."""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.desk import Desk
from nasd.operations.leases import require_control
from nasd.operations.operation import COUNT, FLAG, NAME, TEXT, TIME, Arguments, Operation, gives, gives_list, takes
from nasd.operations.runs import absolute
from nasd.runs import MAIN
from nasd.views import page
from trust.model import Action, GateState, Identity, LeaseId


def _status(desk: Desk, identity: Identity, _: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "show the status")
    appliance = desk.appliance
    records, head = appliance.trust.head()
    _text, source, digest = appliance.trust.adopted_policy()
    return desk.describe() | {
        "main": appliance.engine.branch(MAIN).head,
        "branches": len(appliance.engine.branches()),
        "runs": len(desk.runs.active()),
        "gates": len(appliance.trust.gates(GateState.PENDING)),
        "record": {"records": records, "head": head},
        "policy": {"hash": digest, "source": source},
        "mounts": [desk.mounts.document(mount) for mount in desk.mounts.all()],
    }


def _doors(desk: Desk, _identity: Identity, _: Arguments) -> Document:
    return page({"door": door, "url": url} for door, url in desk.describe()["doors"].items())


def _mount(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    mountpoint = absolute(arguments["mountpoint"])
    target = arguments["target"]
    allow_other = arguments.get("allow_other", desk.appliance.settings.allow_other)
    if target == MAIN:
        if identity.lease is not None:
            raise Fault(Kind.DENIED, "a lease mounts its own branch only", hint="name the run")
        return desk.mounts.add(str(mountpoint), MAIN, "", "", identity.principal.name, allow_other=allow_other)
    run = desk.own_run(identity, target, None)
    lease = identity.lease.id if identity.lease else run.lease
    if run.state != "active":
        raise Fault(
            Kind.CONFLICT, f"{run.run} is {run.state}: its lease no longer counts", hint=f"read it with `nas run checkout {run.run} DIR`"
        )
    return desk.mounts.add(str(mountpoint), run.branch, run.run, lease, run.role, allow_other=allow_other)


def _mounts(desk: Desk, identity: Identity, _: Arguments) -> Document:
    if identity.lease is not None:
        return page(desk.mounts.document(mount) for mount in desk.mounts.all() if mount.run == identity.lease.run)
    desk.require(identity, Action.OBSERVE, "list the mounts")
    return page(desk.mounts.document(mount) for mount in desk.mounts.all())


def _umount(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    mount = desk.mounts.find(arguments["mountpoint"])
    if mount.run:
        desk.own_run(identity, mount.run, None)
        require_control(desk, identity, desk.appliance.trust.lease(LeaseId(mount.lease)))
    else:
        desk.require(identity, Action.OBSERVE, f"unmount {mount.mountpoint}")
    return desk.mounts.remove(mount)


def _collect(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "collect garbage")
    return desk.reclaim.collect(identity, dry_run=arguments.get("dry_run", False))


def _stop(desk: Desk, identity: Identity, _: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "stop the daemon")
    desk.stop()
    return {"stopping": True}


_MOUNT = {"mount": NAME, "mountpoint": TEXT, "branch": NAME, "pid": COUNT, "state": NAME}
_WENT = {"type": "array", "items": {"type": "object"}}

OPERATIONS = (
    Operation(
        "status.show",
        "GET",
        "/v1/status",
        "Show what the appliance is doing",
        _status,
        takes(),
        gives(
            version=NAME, home=TEXT, started=TIME, pid=COUNT, main=NAME, runs=COUNT, gates=COUNT, branches=COUNT, doors={"type": "object"}
        ),
    ),
    Operation(
        "door.list",
        "GET",
        "/v1/doors",
        "Tell where each door is, to anybody who was let in",
        _doors,
        takes(),
        gives_list(door=NAME, url=TEXT),
    ),
    Operation(
        "mount.add",
        "POST",
        "/v1/mounts",
        "Mount a run's branch, or main read-only, on the daemon's machine; returns when it is usable",
        _mount,
        takes({"target": NAME, "mountpoint": TEXT}, allow_other=FLAG),
        gives(**_MOUNT),
        effect=True,
        status=201,
    ),
    Operation("mount.list", "GET", "/v1/mounts", "List the mounts", _mounts, takes(), gives_list(**_MOUNT)),
    Operation(
        "mount.remove",
        "POST",
        "/v1/mounts/remove",
        "Unmount by mountpoint, run, branch or mount id",
        _umount,
        takes({"mountpoint": TEXT}),
        gives(mountpoint=TEXT, state=NAME),
        effect=True,
    ),
    Operation(
        "gc.run",
        "POST",
        "/v1/gc",
        "Remove what is provably merged or past its time; a dry run only says",
        _collect,
        takes(dry_run=FLAG),
        gives(dry_run=FLAG, removed=_WENT, trashed=_WENT, kept=_WENT, bytes=COUNT),
        effect=True,
    ),
    Operation("daemon.stop", "POST", "/v1/stop", "Drain and stop", _stop, takes(), gives(stopping=FLAG), effect=True),
)
