"""``nas gate wait``."""

from __future__ import annotations

import click

from nasd.cli.options import read_seconds
from nasd.cli.session import Session, verb


@verb
@click.argument("gate")
@click.option("--timeout", metavar="DURATION", help="How long; as long as it takes, when not given.")
@click.option("--closed", is_flag=True, help="Wait until what was decided is carried out, too.")
def command(session: Session, gate: str, timeout: str | None, closed: bool) -> int:
    """Wait until a gate is decided.

    Ends with 0 when it is approved, 3 when it is rejected, 4 when the time is over and it still waits, 7 when nobody answered in time,
    8 when nobody used the approval in time, 9 when it was withdrawn, 10 when something else took its place.
    """
    from nasd.cli.cards import exit_of, wait_for_gate
    from nasd.cli.tables import print_fields

    document = wait_for_gate(session, gate, read_seconds(timeout, "--timeout"), closed=closed)
    session.show(document, lambda: print_fields(document, ("gate", "state", "answered_by", "comment", "successor", "outcome")))
    return exit_of(document)
