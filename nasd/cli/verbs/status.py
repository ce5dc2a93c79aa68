"""``nas status``."""

from __future__ import annotations

from nasd.cli.session import Session, verb

_SHOWN = ("version", "home", "pid", "started", "main", "runs", "branches", "gates", "record", "policy", "doors", "mounts")


@verb
def command(session: Session) -> None:
    """Show what the daemon is doing."""
    session.show_fields(session.client.get("/v1/status"), *_SHOWN)
