"""``nas proposal list``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb

_STATES = ["merging", "gated", "merged", "refused", "conflict", "stale", "withdrawn"]


@verb
@click.option("--state", type=click.Choice(_STATES), help="Only proposals in this state.")
@click.option("--run", help="Only proposals of this run.")
def command(session: Session, state: str | None, run: str | None) -> None:
    """List proposals."""
    items = session.client.items("/v1/proposals", state=state, run=run)
    session.show_table(items, "proposal", "state", "run", "files", "gate", "created", "message", empty="no proposals")
