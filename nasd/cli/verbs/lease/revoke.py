"""``nas lease revoke``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("lease")
@click.option("--reason", help="Why; the holder is told.")
def command(session: Session, lease: str, reason: str | None) -> None:
    """Take a lease back, with everything derived from it.

    Open mounts follow within a second.
    """
    session.show_fields(session.client.post(place("/v1/leases/{lease}/revoke", lease=lease), {"reason": reason}), "revoked")
