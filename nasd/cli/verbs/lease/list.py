"""``nas lease list``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.option("--run", help="Only leases of this run.")
@click.option("--state", type=click.Choice(["pending", "live", "expired", "revoked"]), help="Only leases in this state.")
def command(session: Session, run: str | None, state: str | None) -> None:
    """List leases, without their secrets."""
    items = session.client.items("/v1/leases", run=run, state=state)
    session.show_table(items, "lease", "state", "run", "principal", "paths", "actions", "expires", "parent", empty="no leases")
