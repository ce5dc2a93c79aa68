"""Leases: list, show, narrow, revoke."""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.operations.operation import (
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
from nasd.operations.scopes import SCOPE, Limits, read_budgets, read_limits
from nasd.pasting import basic_settings, mcp_settings, mount_settings, s3_settings
from nasd.views import page, view_lease, view_scope
from trust.derived import derive_mount
from trust.model import Action, Identity, Lease, LeaseId, LeaseState, RunId, Scope

_STATES = [state.value for state in LeaseState]


def _list(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    run = RunId(arguments["run"]) if "run" in arguments else None
    now, state = desk.appliance.now(), arguments.get("state")
    shown = (view_lease(lease, now) for lease in desk.appliance.trust.leases(run) if _sees(desk, identity, lease))
    return page(document for document in shown if state in (None, document["state"]))


def _show(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    lease = _seen(desk, identity, arguments["lease"])
    children = [other.id for other in desk.appliance.trust.leases(lease.run) if other.parent == lease.id]
    return view_lease(lease, desk.appliance.now()) | {"children": children}


def _narrow(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    lease = _seen(desk, identity, arguments["lease"])
    require_control(desk, identity, lease)
    scope = _narrowed(lease.scope, arguments, desk.appliance.now())
    trust = desk.appliance.trust
    body = {"parent": lease.id} | view_scope(scope)
    with recorded(trust, desk.appliance.clock, "lease.narrow", identity, body) as outcome:
        child, secret = trust.narrow_lease(lease.id, scope, desk.appliance.now())
        outcome["lease"] = child.id
    return view_lease(child, desk.appliance.now()) | {"secret": secret}


def _narrowed(scope: Scope, arguments: Arguments, now: int) -> Scope:
    limits = read_limits(arguments)
    limits["actors"] = (*scope.actors, *limits.get("actors", ()))
    return Scope(
        tuple(arguments.get("paths", scope.paths)),
        actions_argument(arguments["actions"]) if arguments.get("actions") else scope.actions,
        scope.not_before,
        now + seconds(arguments["ttl"], "ttl") if "ttl" in arguments else scope.expires,
        arguments.get("purpose", scope.purpose),
        dict(scope.budgets) | read_budgets(arguments),
        **(Limits(destinations=scope.destinations) | limits),
    )


def _revoke(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    lease = _seen(desk, identity, arguments["lease"])
    require_control(desk, identity, lease)
    trust, reason = desk.appliance.trust, arguments.get("reason", "")
    with recorded(trust, desk.appliance.clock, "lease.revoke", identity, {"lease": lease.id, "reason": reason}) as outcome:
        revoked = list(trust.revoke_lease(lease.id, reason, desk.appliance.now()))
        outcome["revoked"] = revoked
    return {"revoked": revoked}


def _credentials(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    lease = _seen(desk, identity, arguments["lease"])
    if identity.lease is None and lease.on_behalf_of != identity.principal.name:
        desk.require(identity, Action.ADMINISTER, f"hand out the credentials of {lease.id}")
    elif identity.lease is not None:
        require_control(desk, identity, lease)
    branch = desk.runs.find(lease.run).branch
    doors = desk.describe()["doors"]
    trust = desk.appliance.trust
    with recorded(trust, desk.appliance.clock, "lease.credentials", identity, {"lease": lease.id, "for": arguments["for"]}):
        if arguments["for"] == "s3":
            access_key, secret, token = trust.access_key(lease.id)
            settings = s3_settings(doors["s3"], lease.run, access_key, secret, token)
        elif arguments["for"] == "mcp":
            settings = mcp_settings(doors["mcp"], trust.lease_secret(lease.id))
        elif arguments["for"] == "mount":
            settings = mount_settings(lease.run, derive_mount(trust.lease_secret(lease.id)))
        else:
            settings = basic_settings(arguments["for"], doors, branch, lease.id, trust.basic_password(lease.id))
    return {"lease": lease.id, "run": lease.run, "for": arguments["for"], **settings}


def _sees(desk: Desk, identity: Identity, lease: Lease) -> bool:
    if identity.lease is not None:
        return lease.run == identity.lease.run
    return lease.on_behalf_of == identity.principal.name or desk.allows(identity, Action.OBSERVE)


def _seen(desk: Desk, identity: Identity, name: str) -> Lease:
    lease = desk.appliance.trust.lease(LeaseId(name))
    if not _sees(desk, identity, lease):
        raise Fault(Kind.NOT_FOUND, f"{name}: no such lease", hint="`nas lease list` shows them")
    return lease


def require_control(desk: Desk, identity: Identity, lease: Lease) -> None:
    """Return when the caller may change a lease or what is done with it: the lease itself, one that it descends from, or the owner's side.

    Raises `Kind.DENIED`.
    """
    if identity.lease is None:
        if lease.on_behalf_of != identity.principal.name:
            desk.require(identity, Action.ADMINISTER, f"change {lease.id}")
        return
    ancestor: Lease | None = lease
    while ancestor is not None and ancestor.id != identity.lease.id:
        ancestor = desk.appliance.trust.lease(ancestor.parent) if ancestor.parent else None
    if ancestor is None:
        raise Fault(
            Kind.DENIED,
            f"{lease.id} does not descend from {identity.lease.id}",
            hint="a lease reaches itself and what was narrowed from it",
        )


_LEASE = {
    "lease": NAME,
    "run": NAME,
    "principal": NAME,
    "state": {"enum": _STATES},
    "paths": TEXTS,
    "actions": TEXTS,
    "expires": TIME,
    "budgets": {"type": "object"},
    "destinations": TEXTS,
    "doors": {"type": ["array", "null"], "items": TEXT},
    "ceiling": MAYBE_TEXT,
    "actors": TEXTS,
    "holder": MAYBE_TEXT,
    "depth": {"type": ["integer", "null"]},
}

OPERATIONS = (
    Operation(
        "lease.list",
        "GET",
        "/v1/leases",
        "List leases, without their secrets",
        _list,
        takes(run=NAME, state={"enum": _STATES}),
        gives_list(**_LEASE),
    ),
    Operation(
        "lease.show", "GET", "/v1/leases/{lease}", "Show a lease and what was spent of it", _show, takes({"lease": NAME}), gives(**_LEASE)
    ),
    Operation(
        "lease.narrow",
        "POST",
        "/v1/leases/{lease}/narrow",
        "Derive a narrower lease; its secret is shown this once",
        _narrow,
        takes({"lease": NAME}, **SCOPE),
        gives(secret=TEXT, **_LEASE),
        effect=True,
        status=201,
    ),
    Operation(
        "lease.credentials",
        "POST",
        "/v1/leases/{lease}/credentials",
        "Get what a client of another door needs to use a lease, paste-ready",
        _credentials,
        takes({"lease": NAME, "for": {"enum": ["s3", "git", "webdav", "mcp", "mount"]}}),
        gives(lease=NAME, run=NAME, url=TEXT, settings={"type": "object"}, text=TEXT),
    ),
    Operation(
        "lease.revoke",
        "POST",
        "/v1/leases/{lease}/revoke",
        "Take a lease back, with everything derived from it",
        _revoke,
        takes({"lease": NAME}, reason=TEXT),
        gives(revoked=TEXTS),
        effect=True,
    ),
)
