"""``nas policy show``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """Print the policy in force."""
    document = session.client.get("/v1/policy")
    session.show(document, lambda: print(document["text"], end=""))
