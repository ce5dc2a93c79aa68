"""``nas key remove``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("key")
def command(session: Session, key: str) -> None:
    """Forget a registered SSH key: it lets nobody in any more."""
    document = session.client.post(place("/v1/keys/{key}/remove", key=key), {})
    session.show_fields(document, "key", "removed")
