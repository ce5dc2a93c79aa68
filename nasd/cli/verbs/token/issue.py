"""``nas token issue``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, require_secret, verb


@verb
@click.argument("principal")
@click.option("--label", help="What it is for.")
@click.option("--ttl", metavar="DURATION", help="How long it counts, such as 12h or 30d; without it until it is revoked.")
def command(session: Session, principal: str, label: str | None, ttl: str | None) -> None:
    """Issue a token. Its secret is printed this once."""
    document = session.client.post("/v1/tokens", {"principal": principal, "label": label, "ttl": ttl})
    require_secret(document, document["token"], f"nas token revoke {document['token']}")
    session.show_fields(document, "token", "principal", "label", "expires", "secret")
