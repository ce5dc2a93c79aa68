"""``nas gate withdraw``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("gate")
@click.option("--comment", help="Why; it is kept with the gate.")
def command(session: Session, gate: str, comment: str | None) -> None:
    """Take a question back.

    That is possible until what was approved has begun.
    """
    document = session.client.post(place("/v1/gates/{gate}/withdraw", gate=gate), {"comment": comment})
    session.show_fields(document, "gate", "state", "comment")
