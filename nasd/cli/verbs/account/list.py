"""``nas account list``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """List the accounts that you may use; the owner sees all."""
    items = session.client.items("/v1/accounts")
    session.show_table(items, "account", "kind", "url", "rules", "origin", "daily", "uses_today", empty="no accounts")
