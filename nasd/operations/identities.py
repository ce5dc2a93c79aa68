"""What people and programs prove themselves with, beside tokens and leases: app passwords, certificates, and a login by an issuer."""

from __future__ import annotations

from dataclasses import replace

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.durations import render_time
from nasd.identities.certificates import Certificates, Registered, parse_name
from nasd.identities.limits import READING, WORKING, make_limits
from nasd.identities.passwords import DOORS, AppPassword, AppPasswords
from nasd.operations.operation import DURATION, FLAG, NAME, TEXT, TEXTS, TIME, Arguments, Operation, gives, gives_list, seconds, takes
from nasd.pasting import basic_settings
from nasd.views import page, view_token
from trust.leases import check_scope
from trust.model import Action, Identity, Principal, PrincipalKind, Scope

LOGIN_SECONDS = 12 * 3600
"""How long a login by an issuer counts at most."""
_CERTIFIED = frozenset({PrincipalKind.HUMAN, PrincipalKind.SERVICE})


# -- app passwords ------------------------------------------------------------------------------------------------------


def _create(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    person = _person(desk, identity, arguments.get("principal", identity.principal.name))
    trust, now = desk.appliance.trust, desk.appliance.now()
    limits = _limits(arguments, now)
    label = arguments.get("label", "")
    body = {
        "principal": person.name,
        "door": arguments["for"],
        "paths": list(limits.paths),
        "actions": sorted(action.value for action in limits.actions),
        "expires": limits.expires if "ttl" in arguments else None,
        "label": label,
    }
    with recorded(trust, desk.appliance.clock, "app-password.create", identity, body) as outcome:
        made, secret = AppPasswords(trust, desk.appliance.entropy).create(person.name, label, limits, now)
        outcome["app_password"] = made.id
    settings = basic_settings(arguments["for"], desk.describe()["doors"], arguments.get("branch", "main"), person.name, secret)
    return _view_password(made) | {"user": person.name, "url": settings["url"], "secret": secret}


def _person(desk: Desk, identity: Identity, name: str) -> Principal:
    """Return whom an app password is for; whoever asks may act for them, with more than an app password."""
    if identity.scope is not None:
        raise Fault(Kind.DENIED, "app passwords are made by people, not by leases or app passwords", hint="use a token of your own")
    person = desk.appliance.trust.principal(name)
    if person.kind is not PrincipalKind.HUMAN:
        raise Fault(Kind.INVALID, f"{name} is no human", hint="programs get leases (`nas run start`) or tokens (`nas token issue`)")
    if person.name != identity.principal.name:
        desk.require(identity, Action.ADMINISTER, f"make an app password for {name}")
    return person


def _limits(arguments: Arguments, now: int) -> Scope:
    actions = READING if arguments.get("read_only", False) else WORKING
    expires = now + seconds(arguments["ttl"], "ttl") if "ttl" in arguments else None
    limits = make_limits(tuple(arguments.get("paths") or ("**",)), actions, frozenset({arguments["for"]}), expires)
    check_scope(limits, now)
    return limits


def _passwords(desk: Desk, identity: Identity, _: Arguments) -> Document:
    known = AppPasswords(desk.appliance.trust, desk.appliance.entropy).all()
    return page(_view_password(each) for each in known if _sees(desk, identity, each.principal))


def _revoke(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    passwords = AppPasswords(desk.appliance.trust, desk.appliance.entropy)
    found = passwords.find(arguments["app_password"])
    if not _sees(desk, identity, found.principal):
        raise Fault(Kind.NOT_FOUND, f"{found.id}: no such app password", hint="`nas app-password list` shows them")
    _require_own(desk, identity, found.principal, f"revoke the app password {found.id}")
    with recorded(desk.appliance.trust, desk.appliance.clock, "app-password.revoke", identity, {"app_password": found.id}):
        passwords.revoke(found.id)
    return {"app_password": found.id, "revoked": True}


def _view_password(password: AppPassword) -> Document:
    limits = password.limits
    return {
        "app_password": password.id,
        "principal": password.principal,
        "for": ", ".join(sorted(limits.doors or ())),
        "paths": list(limits.paths),
        "actions": sorted(action.value for action in limits.actions),
        "label": password.label,
        "created": render_time(password.created),
        "expires": render_time(limits.expires) if limits.expires < 1 << 40 else None,
        "last_used": render_time(password.used),
    }


# -- certificates -------------------------------------------------------------------------------------------------------


def _add_certificate(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    name, trust = parse_name(arguments["name"]), desk.appliance.trust
    principal = trust.principal(arguments["principal"])
    desk.require(identity, Action.ADMINISTER, f"register a certificate for {principal.name}")
    if principal.kind not in _CERTIFIED:
        raise Fault(Kind.INVALID, f"{principal.name} is an {principal.kind.value}", hint="agents get leases: `nas run start`")
    with recorded(trust, desk.appliance.clock, "certificate.add", identity, {"name": name, "principal": principal.name}):
        registered = Certificates(trust).add(name, principal.name, arguments.get("label", ""), desk.appliance.now())
    return _view_certificate(registered)


def _certificates(desk: Desk, identity: Identity, _: Arguments) -> Document:
    known = Certificates(desk.appliance.trust).all()
    return page(_view_certificate(each) for each in known if _sees(desk, identity, each.principal))


def _remove_certificate(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    certificates = Certificates(desk.appliance.trust)
    registered = certificates.find(arguments["certificate"])
    if not _sees(desk, identity, registered.principal):
        raise Fault(Kind.NOT_FOUND, f"{registered.id}: no such certificate", hint="`nas certificate list` shows them")
    _require_own(desk, identity, registered.principal, f"remove the certificate {registered.id}")
    with recorded(desk.appliance.trust, desk.appliance.clock, "certificate.remove", identity, {"certificate": registered.id}):
        certificates.remove(registered.id)
    return {"certificate": registered.id, "removed": True}


def _view_certificate(registered: Registered) -> Document:
    return {
        "certificate": registered.id,
        "name": registered.name,
        "principal": registered.principal,
        "label": registered.label,
        "created": render_time(registered.created),
    }


# -- logins -------------------------------------------------------------------------------------------------------------


def _log_in(desk: Desk, identity: Identity, arguments: Arguments) -> Document:
    if identity.method != "oidc":
        raise Fault(Kind.DENIED, "only what an issuer says becomes a login", hint="send its JWT as the bearer token: `nas login`")
    trust, now = desk.appliance.trust, desk.appliance.now()
    wanted = seconds(arguments["ttl"], "ttl") if "ttl" in arguments else LOGIN_SECONDS
    if not 0 < wanted <= LOGIN_SECONDS:
        raise Fault(Kind.INVALID, f"a login lasts at most {LOGIN_SECONDS // 3600} hours", hint="leave --ttl out")
    label = arguments.get("label", "") or "login"
    with recorded(trust, desk.appliance.clock, "login", identity, {"principal": identity.principal.name, "seconds": wanted}) as outcome:
        token, secret = trust.issue_token(identity.principal.name, label, now + wanted, now)
        outcome["token"] = token.id
    return view_token(token) | {"secret": secret}


def _log_out(desk: Desk, identity: Identity, _: Arguments) -> Document:
    if identity.token is None:
        raise Fault(Kind.INVALID, "there is no token to end", hint="a lease ends with its run: `nas run end`")
    trust, now = desk.appliance.trust, desk.appliance.now()
    with recorded(trust, desk.appliance.clock, "logout", identity, {"token": identity.token}):
        trust.revoke_token(identity.token, now)
    return view_token(replace(trust.token(identity.token), revoked=now))


def _sees(desk: Desk, identity: Identity, principal: str) -> bool:
    return identity.scope is None and (principal == identity.principal.name or desk.allows(identity, Action.OBSERVE))


def _require_own(desk: Desk, identity: Identity, principal: str, what: str) -> None:
    if principal != identity.principal.name:
        desk.require(identity, Action.ADMINISTER, what)


_PASSWORD = {
    "app_password": NAME,
    "principal": NAME,
    "for": TEXT,
    "paths": TEXTS,
    "actions": TEXTS,
    "label": TEXT,
    "created": TIME,
    "expires": TIME,
    "last_used": TIME,
}
_CERTIFICATE = {"certificate": NAME, "name": TEXT, "principal": NAME, "label": TEXT, "created": TIME}
_TOKEN = {"token": NAME, "principal": NAME, "label": TEXT, "created": TIME, "expires": TIME, "revoked": TIME}

OPERATIONS = (
    Operation(
        "app-password.create",
        "POST",
        "/v1/app-passwords",
        "Make a password for one program at one door; it is shown this once",
        _create,
        takes({"for": {"enum": sorted(DOORS)}}, principal=NAME, paths=TEXTS, read_only=FLAG, ttl=DURATION, label=TEXT, branch=NAME),
        gives(user=NAME, url=TEXT, secret=TEXT, **_PASSWORD),
        effect=True,
        status=201,
    ),
    Operation(
        "app-password.list",
        "GET",
        "/v1/app-passwords",
        "List app passwords and when each was used last",
        _passwords,
        takes(),
        gives_list(**_PASSWORD),
    ),
    Operation(
        "app-password.revoke",
        "POST",
        "/v1/app-passwords/{app_password}/revoke",
        "End an app password",
        _revoke,
        takes({"app_password": NAME}),
        gives(app_password=NAME, revoked=FLAG),
        effect=True,
    ),
    Operation(
        "certificate.add",
        "POST",
        "/v1/certificates",
        "Register a name in clients' certificates for a principal",
        _add_certificate,
        takes({"name": TEXT, "principal": NAME}, label=TEXT),
        gives(**_CERTIFICATE),
        effect=True,
        status=201,
    ),
    Operation(
        "certificate.list", "GET", "/v1/certificates", "List registered certificates", _certificates, takes(), gives_list(**_CERTIFICATE)
    ),
    Operation(
        "certificate.remove",
        "POST",
        "/v1/certificates/{certificate}/remove",
        "Forget a registered certificate",
        _remove_certificate,
        takes({"certificate": NAME}),
        gives(certificate=NAME, removed=FLAG),
        effect=True,
    ),
    Operation(
        "login.make",
        "POST",
        "/v1/logins",
        "Turn what an issuer says (its JWT as the bearer token) into a token of a few hours; its secret is shown this once",
        _log_in,
        takes(label=TEXT, ttl=DURATION),
        gives(secret=TEXT, **_TOKEN),
        effect=True,
        status=201,
    ),
    Operation(
        "login.end",
        "POST",
        "/v1/logins/end",
        "Revoke the token that asks for it",
        _log_out,
        takes(),
        gives(**_TOKEN),
        effect=True,
    ),
)
