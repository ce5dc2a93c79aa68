"""``nas app-password list``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """List app passwords and when each was used last."""
    items = session.client.items("/v1/app-passwords")
    session.show_table(items, "app_password", "principal", "for", "label", "created", "expires", "last_used", empty="no app passwords")
