"""``nas label unmark``."""

from __future__ import annotations

import click

from nasd.cli.failures import Exit
from nasd.cli.session import Session, verb


@verb
@click.argument("pattern")
@click.option("--reason", default="", help="Why; it is on the card of the question.")
def command(session: Session, pattern: str, reason: str) -> int:
    """Ask people to take a mark away.

    Labels are lowered by an answer only: this opens a gate and ends with exit code 4.
    """
    document = session.client.post("/v1/labels/marks/remove", {"pattern": pattern, "reason": reason})
    session.show_fields(document, "pattern", "before", "after", "gate", "required_role", "digest")
    return Exit.GATED
