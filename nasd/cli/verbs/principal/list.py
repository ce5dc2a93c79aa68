"""``nas principal list``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """List the principals."""
    items = session.client.items("/v1/principals")
    session.show_table(items, "principal", "kind", "roles", "disabled", "created", empty="no principals")
