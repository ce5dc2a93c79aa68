"""SSH keys: register, list, remove, and the lines an SSH server lets them in by."""

from __future__ import annotations

import sys
from pathlib import Path

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.durations import render_time
from nasd.keys import Keys, Registered, authorized_line, parse_key
from nasd.operations.operation import MAYBE_TEXT, NAME, TEXT, TIME, Arguments, Operation, gives, gives_list, takes
from nasd.views import page
from trust.model import Action, Identity, LeaseId


def _add(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    key = parse_key(arguments["key"])
    principal, lease = _holder(desk, identity, arguments)
    trust, clock = desk.appliance.trust, desk.appliance.clock
    body = {"key": key.id, "fingerprint": key.fingerprint, "principal": principal, "lease": lease}
    with recorded(trust, clock, "key.add", identity, body):
        registered = Keys(trust).add(key, principal=principal, lease=lease, label=arguments.get("label", ""), now=desk.appliance.now())
    return _view(registered)


def _holder(desk: Desk, identity: Identity, arguments: Arguments) -> tuple[str, str]:
    """Return the principal and the lease a key is for; whoever asks may act for both."""
    trust = desk.appliance.trust
    if "lease" in arguments or identity.lease is not None:
        lease = trust.lease(LeaseId(arguments.get("lease") or (identity.lease.id if identity.lease else "")))
        if identity.lease is not None and lease.id != identity.lease.id:
            raise Fault(Kind.DENIED, "a lease registers keys for itself only", hint="ask the owner")
        if identity.lease is None and lease.on_behalf_of != identity.principal.name:
            desk.require(identity, Action.ADMINISTER, f"register a key for {lease.id}")
        return lease.principal, lease.id
    principal = trust.principal(arguments.get("principal", identity.principal.name))
    if principal.name != identity.principal.name:
        desk.require(identity, Action.ADMINISTER, f"register a key for {principal.name}")
    return principal.name, ""


def _list(desk: Desk, identity: Identity, _: Arguments) -> Document:
    return page(_view(each) for each in Keys(desk.appliance.trust).all() if _sees(desk, identity, each))


def _remove(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    keys = Keys(desk.appliance.trust)
    registered = keys.find(arguments["key"])
    if not _sees(desk, identity, registered):
        raise Fault(Kind.NOT_FOUND, f"{arguments['key']}: no such key", hint="`nas key list` shows them")
    if not _is_own(identity, registered):
        desk.require(identity, Action.ADMINISTER, f"remove the key {registered.id}")
    with recorded(desk.appliance.trust, desk.appliance.clock, "key.remove", identity, {"key": registered.id}):
        keys.remove(registered.id)
    return {"key": registered.id, "removed": True}


def _authorized(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.ADMINISTER, "list what SSH lets in")
    keys = Keys(desk.appliance.trust).live(desk.appliance.now())
    wanted = parse_key(arguments["key"]).text if "key" in arguments else None
    program, home = Path(sys.executable).with_name("nas"), desk.appliance.settings.home
    lines = [authorized_line(each, program, home) for each in keys if wanted in (None, each.key)]
    return {"text": "".join(f"{line}\n" for line in lines)}


def _sees(desk: Desk, identity: Identity, registered: Registered) -> bool:
    if identity.lease is not None:
        return registered.lease == identity.lease.id
    return _is_own(identity, registered) or desk.allows(identity, Action.OBSERVE)


def _is_own(identity: Identity, registered: Registered) -> bool:
    if identity.lease is not None:
        return registered.lease == identity.lease.id
    return registered.principal == identity.principal.name and not registered.lease


def _view(registered: Registered) -> Document:
    return {
        "key": registered.id,
        "fingerprint": registered.fingerprint,
        "principal": registered.principal,
        "lease": registered.lease or None,
        "label": registered.label,
        "created": render_time(registered.created),
    }


_KEY = {"key": NAME, "fingerprint": NAME, "principal": NAME, "lease": MAYBE_TEXT, "label": TEXT, "created": TIME}

OPERATIONS = (
    Operation(
        "key.add",
        "POST",
        "/v1/keys",
        "Register an SSH public key for a principal or a lease",
        _add,
        takes({"key": TEXT}, principal=NAME, lease=NAME, label=TEXT),
        gives(**_KEY),
        effect=True,
        status=201,
    ),
    Operation("key.list", "GET", "/v1/keys", "List SSH keys", _list, takes(), gives_list(**_KEY)),
    Operation(
        "key.remove", "POST", "/v1/keys/{key}/remove", "Forget an SSH key", _remove, takes({"key": NAME}), gives(key=NAME), effect=True
    ),
    Operation(
        "key.authorized",
        "GET",
        "/v1/keys/authorized",
        "Return the lines of authorized_keys that let the registered keys in, or one of them",
        _authorized,
        takes(key=TEXT),
        gives(text=TEXT),
    ),
)
