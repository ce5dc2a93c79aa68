"""``nas principal add``."""

from __future__ import annotations

import click

from nasd.cli.options import read_pairs
from nasd.cli.session import Session, verb


@verb
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(["human", "agent", "service", "node"]), default="human", show_default=True, help="What sort of someone."
)
@click.option("--attribute", "attributes", multiple=True, metavar="NAME=VALUE", help="Something the policy can see; repeatable.")
def command(session: Session, name: str, kind: str, attributes: tuple[str, ...]) -> None:
    """Make a principal known.

    `nas token issue` gives it a credential.
    """
    body = {"name": name, "kind": kind, "attributes": read_pairs(attributes, "--attribute") or None}
    session.show_fields(session.client.post("/v1/principals", body), "principal", "kind", "roles", "created")
