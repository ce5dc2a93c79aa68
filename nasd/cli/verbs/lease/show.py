"""``nas lease show``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place

_SHOWN = (
    "lease",
    "state",
    "run",
    "principal",
    "on_behalf_of",
    "purpose",
    "paths",
    "actions",
    "not_before",
    "expires",
    "destinations",
    "doors",
    "ceiling",
    "actors",
    "holder",
    "depth",
    "parent",
    "children",
    "reason",
)


@verb
@click.argument("lease")
def command(session: Session, lease: str) -> None:
    """Show a lease and what was spent of its budgets."""
    document = session.client.get(place("/v1/leases/{lease}", lease=lease))

    def human() -> None:
        from nasd.cli.tables import print_fields, print_table

        print_fields(document, _SHOWN)
        print()
        print_table([{"budget": name, **budget} for name, budget in document["budgets"].items()], ("budget", "used", "limit"), "no budgets")

    session.show(document, human)
