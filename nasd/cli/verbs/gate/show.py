"""``nas gate show``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("gate")
@click.option("--markdown", is_flag=True, help="Print the card as markdown.")
def command(session: Session, gate: str, markdown: bool) -> None:
    """Show a gate with its card.

    The card says what is asked, who asks and why, what it would change, what it rests on, and what follows from each answer and from none.
    """
    document = session.client.get(place("/v1/gates/{gate}", gate=gate))

    def human() -> None:
        from nasd.cards import markdown_of
        from nasd.cli.cards import print_card

        if markdown:
            print(markdown_of(document))
        else:
            print_card(document)

    session.show(document, human)
