"""Whom the appliance believes about people and programs: issuers of OpenID Connect, as the settings declare them. Pure.

1. Everything is declared: which issuer, for which audience, by which algorithms, which claims become attributes and which of their
   values become roles. What is not declared is not seen by anybody here.
2. Only signatures with a public key count: a shared secret would let this appliance speak for its issuer, and ``none`` anybody.
3. An issuer is reached by HTTPS; plain HTTP only on the loopback, for trying things out.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from nasd.errors import Misconfigured

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"})
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_KINDS = frozenset({"human", "service"})
_RESERVED = frozenset({"roles", "issuer"})


@dataclass(frozen=True, slots=True)
class Issuer:
    """One issuer.

    `audience` is what a token must be for. `clients` are the programs whose tokens count (empty: any that the issuer made for the
    audience); the first is the one that ``nas login`` speaks as. What those of `services` get is about a service, everything else about
    a `kind`. A principal is called `prefix` and what the claim `principal` says; with `create` it is made known when it first comes.
    `subjects` names principals that exist here for subjects of the issuer. `attributes` maps attributes of principals to claims; `roles`
    maps values of the claim `roles_claim` to roles. `certificates` is a file with the authorities that the issuer's own certificate hangs
    on, empty for those of the system.
    """

    name: str
    issuer: str
    audience: str
    clients: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    kind: str = "human"
    principal: str = "sub"
    prefix: str = ""
    create: bool = True
    subjects: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    roles_claim: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    scopes: tuple[str, ...] = ("openid",)
    certificates: str = ""


_KNOWN = tuple(each.name for each in fields(Issuer))
_TEXTS = frozenset({"name", "issuer", "audience", "kind", "principal", "prefix", "roles_claim", "certificates"})
_LISTS = frozenset({"clients", "services", "algorithms", "scopes"})
_TABLES = frozenset({"subjects", "attributes", "roles"})


def read_issuers(value: object) -> tuple[Issuer, ...]:
    """Return the issuers of a list of tables. Raises `Misconfigured`."""
    if not isinstance(value, list | tuple):
        raise Misconfigured("issuers: expected a list of tables", hint="write [[issuers]] in the configuration file")
    found = tuple(each if isinstance(each, Issuer) else read_issuer(each) for each in value)
    for attribute in ("name", "issuer"):
        names = [getattr(each, attribute) for each in found]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise Misconfigured(f"issuers: two have the {attribute} {twice!r}", hint="declare an issuer once")
    return found


def read_issuer(table: object) -> Issuer:
    """Return the issuer of one table. Raises `Misconfigured`."""
    if not isinstance(table, Mapping):
        raise Misconfigured("issuers: expected a list of tables", hint="write [[issuers]] in the configuration file")
    for key in table:
        if key not in _KNOWN:
            near = difflib.get_close_matches(str(key), _KNOWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_KNOWN)}"
            raise Misconfigured(f"issuers: unknown setting {key!r}", hint=hint)
    for key in ("name", "issuer", "audience"):
        if not table.get(key):
            raise Misconfigured(f"issuers: {key} is missing", hint="an issuer has at least name, issuer and audience")
    issuer = Issuer(**{key: _value(key, value) for key, value in table.items()})
    _check(issuer)
    return issuer


def is_reachable_safely(url: str) -> bool:
    """Tell whether nobody on the way can answer in place of a url: HTTPS, or the loopback."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)) and parts.username is None


def _value(key: str, value: object) -> Any:
    if key in _TEXTS and isinstance(value, str):
        return value
    if key == "create" and isinstance(value, bool):
        return value
    if key in _LISTS and isinstance(value, list | tuple) and all(isinstance(each, str) and each for each in value):
        return tuple(value)
    if key in _TABLES and isinstance(value, Mapping) and all(isinstance(each, str) and each for pair in value.items() for each in pair):
        return dict(value)
    wanted = "text" if key in _TEXTS else "true or false" if key == "create" else "a list of texts" if key in _LISTS else "a table of texts"
    raise Misconfigured(f"issuers: {key}: expected {wanted}, found {value!r}", hint="docs/guides/identities.md shows a whole issuer")


def _check(issuer: Issuer) -> None:
    said = f"issuers: {issuer.name}"
    if not issuer.name.isascii() or not issuer.name.replace("-", "").isalnum() or len(issuer.name) > 64:
        raise Misconfigured(f"{said}: a name has letters, digits and '-'", hint="for example: corp")
    if not is_reachable_safely(issuer.issuer) or urlsplit(issuer.issuer).query or urlsplit(issuer.issuer).fragment:
        raise Misconfigured(f"{said}: {issuer.issuer!r} is no https url", hint="copy `issuer` from its .well-known/openid-configuration")
    if issuer.kind not in _KINDS:
        raise Misconfigured(f"{said}: kind is human or service, not {issuer.kind!r}", hint="agents get leases: nas run start")
    if unknown := sorted(set(issuer.algorithms) - ALGORITHMS) or (not issuer.algorithms and ["none"]):
        raise Misconfigured(f"{said}: the algorithm {unknown[0]!r} is not taken", hint=f"choose among {', '.join(sorted(ALGORITHMS))}")
    if taken := sorted(_RESERVED & set(issuer.attributes)):
        raise Misconfigured(f"{said}: the attribute {taken[0]!r} is set otherwise", hint="roles come from roles_claim and roles")
    if bool(issuer.roles) != bool(issuer.roles_claim):
        raise Misconfigured(
            f"{said}: roles and roles_claim belong together", hint='roles_claim = "groups", roles = {"nas-admins" = "owner"}'
        )
