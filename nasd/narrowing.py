"""What the holder of a lease does with its secret alone: narrowing it, and deriving what other clients need. Nobody is asked.

1. Nothing here knows the lease's row: whether a narrowing goes beyond it is not found out but does not matter, since the server takes the
   meet of both.
2. Pure: the time is an argument. A secret is an argument and a result, and is in no message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.durations import render_time
from nasd.operations.operation import actions_argument, seconds
from nasd.operations.scopes import read_limits
from trust.caveats import Caveat
from trust.derived import derive_basic, derive_key_pair, derive_mount
from trust.errors import Unauthenticated
from trust.tokens import narrow_token, parse_lease_token


def narrow_offline(secret: str, given: Mapping[str, Any], now: int) -> Document:
    """Return the document of a lease narrowed from a secret by the arguments of `lease.narrow`, with its secret.

    Raises `Kind.INVALID` for arguments that mean nothing, and for a secret that is none or cannot be narrowed further.
    """
    caveat = caveat_of(given, now)
    if not caveat:
        raise Fault(Kind.INVALID, "nothing would be narrower", hint="say what it may do: --paths, --actions, --ttl ...")
    try:
        parent = parse_lease_token(secret)
        narrowed = narrow_token(secret, caveat)
    except Unauthenticated as error:
        raise Fault(
            Kind.INVALID, f"cannot narrow it: {error.why}", hint="give the secret of a lease, and narrowings it can carry"
        ) from error
    shown = {name: value for name, value in given.items() if value is not None and name != "ttl"}
    expires = {"expires": render_time(caveat["exp"])} if "exp" in caveat else {}
    return {"lease": parse_lease_token(narrowed).id, "parent": parent.id, **shown, **expires, "secret": narrowed}


def caveat_of(given: Mapping[str, Any], now: int) -> Caveat:
    """Return the caveat that says what the arguments of `lease.narrow` say (None: not given). Raises `Kind.INVALID`."""
    arguments = {name: value for name, value in given.items() if value is not None}
    limits = read_limits(arguments)
    caveat: dict[str, Any] = {
        "p": arguments.get("paths"),
        "a": sorted(action.value for action in actions_argument(arguments["actions"])) if "actions" in arguments else None,
        "exp": now + seconds(arguments["ttl"], "ttl") if "ttl" in arguments else None,
        "pur": arguments.get("purpose"),
        "bud": arguments.get("budgets"),
        "dst": arguments.get("destinations"),
        "aud": sorted(limits["doors"]) if "doors" in limits else None,
        "cnf": arguments.get("holder"),
        "who": arguments.get("actors"),
        "dep": arguments.get("depth"),
    }
    if ceiling := limits.get("ceiling"):
        caveat["lab"] = {"origin": ceiling.origin.name.lower(), "sensitivity": ceiling.sensitivity.name.lower()}
    return {letter: value for letter, value in caveat.items() if value is not None}


def lease_of(secret: str) -> str:
    """Return the id of the lease that a secret is of. Raises `Kind.INVALID`."""
    try:
        return parse_lease_token(secret).id
    except Unauthenticated as error:
        raise Fault(Kind.INVALID, "that is no secret of a lease", hint="`nas run start` and `nas lease narrow` print one") from error


def derive_offline(secret: str, door: str) -> Mapping[str, str]:
    """Return what a client of a door (``s3``, ``git``, ``webdav``, ``mcp``, ``mount``) needs beside an address. Raises `Kind.INVALID`."""
    lease_of(secret)
    match door:
        case "s3":
            names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
            return {name: value for name, value in zip(names, derive_key_pair(secret), strict=True) if value}
        case "git" | "webdav":
            return dict(zip(("user", "password"), derive_basic(secret), strict=True))
        case "mount":
            return {"credential": derive_mount(secret)}
        case _:
            return {"secret": secret}
