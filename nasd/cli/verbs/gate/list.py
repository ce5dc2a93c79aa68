"""``nas gate list``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb

_STATES = ["pending", "approved", "rejected", "expired", "lapsed", "withdrawn", "superseded"]


@verb
@click.option("--state", type=click.Choice(_STATES), help="Only gates in this state.")
@click.option("--run", help="Only gates of this run.")
def command(session: Session, state: str | None, run: str | None) -> None:
    """List the questions for people."""
    items = session.client.items("/v1/gates", state=state, run=run)
    session.show_table(items, "gate", "state", "phase", "subject", "rule", "required_role", "deadline", "digest", empty="no gates")
