"""``nas principal disable``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("name")
def command(session: Session, name: str) -> None:
    """Disable a principal, its tokens and its leases.

    They stop counting at once, for open mounts too.
    """
    session.show_fields(session.client.post(place("/v1/principals/{name}/disable", name=name)), "principal", "disabled")
