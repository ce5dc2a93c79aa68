"""``nas account test``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("account")
@click.option("--path", help="Also ask the server for this, such as /user.")
def command(session: Session, account: str, path: str | None) -> None:
    """Try an account: whether the broker finds its secret.

    With --path also what the server says to it.
    """
    document = session.client.post(place("/v1/accounts/{account}/test", account=account), {"path": path})
    session.show_fields(document, "account", "resolves", "status")
