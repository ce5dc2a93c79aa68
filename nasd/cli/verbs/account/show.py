"""``nas account show``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place

_FIELDS = ("account", "kind", "url", "secret", "rules", "username", "header", "headers", "principals", "daily", "uses_today", "authorities")


@verb
@click.argument("account")
def command(session: Session, account: str) -> None:
    """Show an account: where it goes and what it lets.

    Where its secret is kept is shown to the owner only.
    """
    document = session.client.get(place("/v1/accounts/{account}", account=account))
    session.show_fields(document, *_FIELDS, "origin", "sensitivity")
