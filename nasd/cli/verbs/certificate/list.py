"""``nas certificate list``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """List the registered certificates."""
    items = session.client.items("/v1/certificates")
    session.show_table(items, "certificate", "principal", "name", "label", "created", empty="no certificates")
