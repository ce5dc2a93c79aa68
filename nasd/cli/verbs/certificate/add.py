"""``nas certificate add``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("name")
@click.option("--principal", required=True, help="Whom it stands for: a human or a service.")
@click.option("--label", help="What it is for.")
def command(session: Session, name: str, principal: str, label: str | None) -> None:
    """Register a name in clients' certificates.

    NAME is sha256:HEX of the whole certificate, subject:CN=..., DNS:..., URI:... or email:... . It counts when a proxy of the settings
    vouches for the certificate.
    """
    document = session.client.post("/v1/certificates", {"name": name, "principal": principal, "label": label})
    session.show_fields(document, "certificate", "name", "principal", "label")
