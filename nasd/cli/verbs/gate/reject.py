"""``nas gate reject``."""

from __future__ import annotations

import click

from nasd.cli.failures import Exit
from nasd.cli.session import Session, verb


@verb
@click.argument("gate")
@click.option("--digest", help="The digest of the card that was judged; nothing is shown or asked.")
@click.option("--yes", is_flag=True, help="Answer the card as it is now, without being asked.")
@click.option("--alike", is_flag=True, help="Answer every gate that waits and asks the same, each by its own digest.")
@click.option("--comment", help="Why; it is kept with the answer.")
def command(session: Session, gate: str, digest: str | None, yes: bool, alike: bool, comment: str | None) -> int:
    """Say no to a gate.

    The card is shown first, and the answer counts for exactly that card.
    """
    from nasd.cli.cards import answer_gate, answer_with_alike, print_answer

    if alike:
        return answer_with_alike(session, gate, "reject", digest=digest, yes=yes, comment=comment)
    document = answer_gate(session, gate, "reject", digest=digest, yes=yes, comment=comment)
    session.show(document, lambda: print_answer(document))
    return Exit.OK
