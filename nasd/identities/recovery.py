"""What became of an act about credentials that a crash cut short: taking away is finished, giving is looked up.

1. A credential whose secret nobody saw (an app password, a login) stays as unknown: it is in the lists, and can be revoked there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nasd.identities.certificates import Certificates
from nasd.identities.passwords import AppPasswords
from nasd.wiring import Appliance

Resolve = Callable[[Mapping[str, Any]], str]
"""Finds out, or finishes, what an intent announced; returns what came of it."""


def resolvers_of(appliance: Appliance) -> Mapping[str, Resolve]:
    """Return how each kind of intent about credentials is concluded."""
    certificates = Certificates(appliance.trust)

    def revoke_password(body: Mapping[str, Any]) -> str:
        AppPasswords(appliance.trust, appliance.entropy).revoke(str(body["app_password"]))
        return "done"

    def add_certificate(body: Mapping[str, Any]) -> str:
        return "done" if any(each.name == body["name"] for each in certificates.all()) else "undone"

    def remove_certificate(body: Mapping[str, Any]) -> str:
        certificates.remove(str(body["certificate"]))
        return "done"

    def log_out(body: Mapping[str, Any]) -> str:
        appliance.trust.revoke_token(str(body["token"]), appliance.now())
        return "done"

    return {
        "app-password.revoke": revoke_password,
        "certificate.add": add_certificate,
        "certificate.remove": remove_certificate,
        "logout": log_out,
    }
