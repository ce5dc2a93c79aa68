"""``nas lease narrow``."""

from __future__ import annotations

import click

from nasd.cli.options import read_scope, scope_options
from nasd.cli.session import Session, require_secret, verb
from nasd.client import place


@verb
@click.argument("lease")
@scope_options
def command(
    session: Session,
    lease: str,
    paths: tuple[str, ...],
    actions: tuple[str, ...],
    ttl: str | None,
    purpose: str | None,
    budgets: tuple[str, ...],
) -> None:
    """Derive a narrower lease, for a sub-agent.

    Its secret is printed this once. Nothing can be widened.
    """
    document = session.client.post(place("/v1/leases/{lease}/narrow", lease=lease), read_scope(paths, actions, ttl, purpose, budgets))
    require_secret(document, document["lease"], f"nas lease revoke {document['lease']}")
    session.show_fields(document, "lease", "parent", "run", "paths", "actions", "expires", "secret")
