"""``nas proposal show``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place

_SHOWN = (
    "proposal",
    "state",
    "run",
    "branch",
    "target",
    "head",
    "message",
    "reason",
    "policy",
    "gate",
    "files",
    "deletes",
    "bytes",
    "checks",
    "conflicts",
    "created",
    "decided",
)


@verb
@click.argument("proposal")
def command(session: Session, proposal: str) -> None:
    """Show a proposal and what became of it."""
    session.show_fields(session.client.get(place("/v1/proposals/{proposal}", proposal=proposal)), *_SHOWN)
