"""``nas token revoke``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("token")
def command(session: Session, token: str) -> None:
    """Revoke a token."""
    session.show_fields(session.client.post(place("/v1/tokens/{token}/revoke", token=token)), "token", "principal", "revoked")
