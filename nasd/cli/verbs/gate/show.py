"""``nas gate show``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("gate")
def command(session: Session, gate: str) -> None:
    """Show a gate with its card.

    The card says what is asked, who asks, why, and what happens on either answer.
    """
    document = session.client.get(place("/v1/gates/{gate}", gate=gate))

    def human() -> None:
        from nasd.cli.cards import print_card

        print_card(document)

    session.show(document, human)
