"""``nas key list``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """List the registered SSH keys."""
    session.show_table(session.client.items("/v1/keys"), "key", "principal", "lease", "label", "created", "fingerprint", empty="no keys")
