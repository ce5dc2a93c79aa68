"""Principals and their tokens."""

from __future__ import annotations

from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.operations.operation import DURATION, FLAG, MAYBE_TEXT, NAME, TEXT, TIME, Arguments, Operation, gives, gives_list, seconds, takes
from nasd.views import page, view_principal, view_token
from trust.model import Action, Identity, PrincipalKind

_KINDS = [kind.value for kind in PrincipalKind]


def _add(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    name, kind = arguments["name"], arguments["kind"]
    desk.require(identity, Action.ADMINISTER, f"add the principal {name}")
    trust, clock = desk.appliance.trust, desk.appliance.clock
    attributes = arguments.get("attributes", {})
    with recorded(trust, clock, "principal.add", identity, {"principal": name, "kind": kind, "attributes": attributes}):
        principal = trust.add_principal(name, PrincipalKind(kind), desk.appliance.now(), attributes)
    return view_principal(principal, trust.roles(principal))


def _list(desk: Desk, identity: Identity, _: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "list principals")
    trust = desk.appliance.trust
    return page(view_principal(principal, trust.roles(principal)) for principal in trust.principals())


def _disable(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    name = arguments["name"]
    desk.require(identity, Action.ADMINISTER, f"disable {name}")
    trust = desk.appliance.trust
    trust.principal(name)
    with recorded(trust, desk.appliance.clock, "principal.disable", identity, {"principal": name}):
        trust.disable_principal(name, desk.appliance.now())
    disabled = trust.principal(name)
    return view_principal(disabled, trust.roles(disabled))


def _issue(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    principal, label = arguments["principal"], arguments.get("label", "")
    desk.require(identity, Action.ADMINISTER, f"issue a token for {principal}")
    trust, now = desk.appliance.trust, desk.appliance.now()
    expires = now + seconds(arguments["ttl"], "ttl") if "ttl" in arguments else None
    with recorded(
        trust, desk.appliance.clock, "token.issue", identity, {"principal": principal, "label": label, "expires": expires}
    ) as outcome:
        token, secret = trust.issue_token(principal, label, expires, now)
        outcome["token"] = token.id
    return view_token(token) | {"secret": secret}


def _tokens(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    desk.require(identity, Action.OBSERVE, "list tokens")
    return page(view_token(token) for token in desk.appliance.trust.tokens(arguments.get("principal")))


def _revoke(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    token = arguments["token"]
    desk.require(identity, Action.ADMINISTER, f"revoke the token {token}")
    trust = desk.appliance.trust
    with recorded(trust, desk.appliance.clock, "token.revoke", identity, {"token": token}):
        trust.revoke_token(token, desk.appliance.now())
    return next(view_token(known) for known in trust.tokens() if known.id == token)


_PRINCIPAL = {"principal": NAME, "kind": {"enum": _KINDS}, "disabled": FLAG, "created": TIME}
_TOKEN = {"token": NAME, "principal": NAME, "label": TEXT, "created": TIME, "expires": TIME, "revoked": TIME}
_ATTRIBUTES = {"type": "object", "additionalProperties": TEXT}

OPERATIONS = (
    Operation(
        "principal.add",
        "POST",
        "/v1/principals",
        "Make a principal known",
        _add,
        takes({"name": NAME, "kind": {"enum": _KINDS}}, attributes=_ATTRIBUTES),
        gives(**_PRINCIPAL),
        effect=True,
        status=201,
    ),
    Operation("principal.list", "GET", "/v1/principals", "List the principals", _list, takes(), gives_list(**_PRINCIPAL)),
    Operation(
        "principal.disable",
        "POST",
        "/v1/principals/{name}/disable",
        "Disable a principal: its tokens and leases stop counting",
        _disable,
        takes({"name": NAME}),
        gives(**_PRINCIPAL),
        effect=True,
    ),
    Operation(
        "token.issue",
        "POST",
        "/v1/tokens",
        "Issue a token; its secret is shown this once",
        _issue,
        takes({"principal": NAME}, label=TEXT, ttl=DURATION),
        gives(secret=TEXT, **_TOKEN),
        effect=True,
        status=201,
    ),
    Operation(
        "token.list", "GET", "/v1/tokens", "List tokens, without their secrets", _tokens, takes(principal=NAME), gives_list(**_TOKEN)
    ),
    Operation(
        "token.revoke",
        "POST",
        "/v1/tokens/{token}/revoke",
        "Revoke a token",
        _revoke,
        takes({"token": NAME}),
        gives(token=NAME, revoked=MAYBE_TEXT),
        effect=True,
    ),
)
