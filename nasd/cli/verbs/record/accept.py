"""``nas record accept``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.option("--loss", is_flag=True, required=True, help="Say that records may be lost.")
def command(session: Session, loss: bool) -> None:
    """Go on with a record of which a part was lost.

    For the case that the daemon does not start because a signed checkpoint proves that records are gone, and there is no newer copy. The
    loss is recorded, and the log goes on under another name and key: whoever knew the former one sees that it ended. Needs no daemon.
    """
    from nasd.accepting import accept_loss

    session.show_fields(accept_loss(session.settings), "records", "former", "origin", "key", "lost")
