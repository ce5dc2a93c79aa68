"""``nas version``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """Print the version."""
    from importlib.metadata import version

    installed = version("agent-nas")
    session.show({"version": installed}, lambda: print(installed))
