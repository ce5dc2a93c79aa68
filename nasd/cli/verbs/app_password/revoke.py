"""``nas app-password revoke``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("app_password")
def command(session: Session, app_password: str) -> None:
    """End an app password: it lets nobody in any more."""
    document = session.client.post(place("/v1/app-passwords/{app_password}/revoke", app_password=app_password), {})
    session.show_fields(document, "app_password", "revoked")
