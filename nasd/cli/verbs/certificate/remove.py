"""``nas certificate remove``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("certificate")
def command(session: Session, certificate: str) -> None:
    """Forget a registered certificate: it lets nobody in any more."""
    document = session.client.post(place("/v1/certificates/{certificate}/remove", certificate=certificate), {})
    session.show_fields(document, "certificate", "removed")
