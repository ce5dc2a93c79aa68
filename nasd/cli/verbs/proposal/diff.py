"""``nas proposal diff``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("proposal")
@click.option("--name-status", is_flag=True, help="One line for each path instead of patches.")
def command(session: Session, proposal: str, name_status: bool) -> None:
    """Show what a proposal changes."""
    changes = list(session.client.items(place("/v1/proposals/{proposal}/diff", proposal=proposal), patch=not name_status))

    def human() -> None:
        from nasd.cli.tables import print_changes

        print_changes(changes, patch=not name_status)

    session.show(changes, human)
