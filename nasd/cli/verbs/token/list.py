"""``nas token list``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.option("--principal", help="Only the tokens of this principal.")
def command(session: Session, principal: str | None) -> None:
    """List tokens, without their secrets."""
    items = session.client.items("/v1/tokens", principal=principal)
    session.show_table(items, "token", "principal", "label", "created", "expires", "revoked", empty="no tokens")
