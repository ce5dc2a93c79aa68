"""``nas run list``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb

_STATES = ["active", "ended", "expired", "revoked", "trashed", "removed"]


@verb
@click.option("--state", type=click.Choice(_STATES), help="Only runs in this state.")
@click.option("--role", help="Only runs of this role.")
def command(session: Session, state: str | None, role: str | None) -> None:
    """List runs."""
    items = session.client.items("/v1/runs", state=state, role=role)
    session.show_table(items, "run", "role", "state", "branch", "created", "ended", "purpose", empty="no runs")
