"""Which principal of this appliance somebody is whom an issuer or a certificate names.

1. A name belongs to the subject that had it first. Whoever is renamed into somebody else's name at the issuer, and whoever is called as a
   principal of this appliance is, stays outside: names are reused, subjects are not.
2. A principal that is declared for a subject (`Issuer.subjects`) has to exist, and keeps the attributes it has here.
3. One that came by an issuer has the attributes and standing roles of the latest assertion about it; an older one changes nothing.
4. What changes is recorded in the same transaction, and no decision from before counts any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nasd.identities.claims import Assertion
from nasd.identities.issuers import Issuer
from trust.errors import Outdated, Taken, Unauthenticated, Unknown
from trust.model import Principal, PrincipalKind
from trust.service import Trust

KIND = "asserted"
"""The kind of the documents that say whose a name is."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Whose a name is, and of when what is known of it is."""

    version: int
    issuer: str
    subject: str
    made: int


def resolve(trust: Trust, issuer: Issuer, assertion: Assertion, now: int) -> Principal:
    """Return the principal that an assertion is about, making it known where that is declared. Raises `Unauthenticated`."""
    declared = issuer.subjects.get(assertion.subject)
    if declared is not None:
        return _existing(trust, declared)
    bound = _bound(trust, assertion.name)
    if bound is None:
        return _make(trust, issuer, assertion, now)
    if (bound.issuer, bound.subject) != (assertion.issuer, assertion.subject):
        raise Unauthenticated(assertion.name, "the name belongs to somebody else")
    principal = _existing(trust, assertion.name)
    if assertion.made > bound.made:
        return _renew(trust, principal, assertion, bound, now)
    return principal


def _existing(trust: Trust, name: str) -> Principal:
    try:
        return trust.principal(name)
    except Unknown as error:
        raise Unauthenticated(name, "no such principal") from error


def _bound(trust: Trust, name: str) -> Bound | None:
    try:
        found = trust.document(KIND, name)
    except Unknown:
        return None
    return Bound(found.version, found.body["issuer"], found.body["subject"], found.body["made"])


def _make(trust: Trust, issuer: Issuer, assertion: Assertion, now: int) -> Principal:
    if not issuer.create:
        raise Unauthenticated(assertion.name, "nobody declared the subject, and this issuer makes nobody known")
    attributes = _attributes(assertion)
    body = {
        "principal": assertion.name,
        "kind": assertion.kind,
        "issuer": issuer.name,
        "subject": assertion.subject,
        "attributes": attributes,
    }
    try:
        with trust.transaction():
            trust.put_document(KIND, assertion.name, _document(assertion), 0)
            principal = trust.add_principal(assertion.name, PrincipalKind(assertion.kind), now, attributes)
            trust.state("principal.asserted", None, body, now)
    except Taken as error:
        # Somebody else came first in this moment, or a principal of this appliance has the name.
        bound = _bound(trust, assertion.name)
        if bound is not None and (bound.issuer, bound.subject) == (assertion.issuer, assertion.subject):
            return _existing(trust, assertion.name)
        raise Unauthenticated(assertion.name, "the name belongs to somebody else") from error
    return principal


def _renew(trust: Trust, principal: Principal, assertion: Assertion, bound: Bound, now: int) -> Principal:
    attributes = _attributes(assertion)
    if dict(principal.attributes) == attributes:
        return principal
    body = {"principal": principal.name, "issuer": assertion.issuer, "before": dict(principal.attributes), "attributes": attributes}
    try:
        with trust.transaction():
            trust.put_document(KIND, assertion.name, _document(assertion), bound.version)
            trust.set_attributes(principal.name, attributes)
            trust.state("principal.asserted", None, body, now)
    except Outdated:
        return _existing(trust, assertion.name)  # another process heard it, or something later, first
    return _existing(trust, assertion.name)


def _attributes(assertion: Assertion) -> dict[str, str]:
    roles = {"roles": ",".join(assertion.roles)} if assertion.roles else {}
    return {**assertion.attributes, **roles, "issuer": assertion.issuer}


def _document(assertion: Assertion) -> Mapping[str, Any]:
    return {"issuer": assertion.issuer, "subject": assertion.subject, "made": assertion.made}
