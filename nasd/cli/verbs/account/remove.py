"""``nas account remove``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("account")
def command(session: Session, account: str) -> None:
    """Forget an account: nothing goes out with it any more.

    The secret stays where it is.
    """
    document = session.client.post(place("/v1/accounts/{account}/remove", account=account), {})
    session.show_fields(document, "account", "removed")
