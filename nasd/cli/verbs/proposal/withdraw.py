"""``nas proposal withdraw``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("proposal")
@click.option("--comment", help="Why.")
def command(session: Session, proposal: str, comment: str | None) -> None:
    """Take back a proposal that waits; its gate closes."""
    document = session.client.post(place("/v1/proposals/{proposal}/withdraw", proposal=proposal), {"comment": comment})
    session.show_fields(document, "proposal", "state")
