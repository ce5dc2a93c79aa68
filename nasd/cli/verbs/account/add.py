"""``nas account add``."""

from __future__ import annotations

from typing import Any

import click

from nasd.cli.options import read_list
from nasd.cli.session import Session, verb


@verb
@click.argument("name")
@click.option("--url", required=True, help="Where it is and nowhere else: https://HOST[:PORT][/PATH].")
@click.option("--reference", "secret", required=True, help="env://NAME, file:///PATH, systemd://NAME or vault://MOUNT/PATH#FIELD.")
@click.option(
    "--kind", type=click.Choice(["bearer", "basic", "header", "git"]), default="bearer", show_default=True, help="How it is presented."
)
@click.option(
    "--allow", "rules", multiple=True, metavar="RULE", help='Such as "GET repos/**" or "PUSH org/*"; repeatable. Default: GET **.'
)
@click.option("--username", help="The user of kinds basic and git.")
@click.option("--header", help="The header of kind header, such as X-Api-Key.")
@click.option("--allow-header", "headers", multiple=True, metavar="NAME", help="A further header that requests may set; repeatable.")
@click.option(
    "--for", "principals", multiple=True, metavar="PRINCIPAL", help="Who may use it; repeatable. Default: whoever the policy lets."
)
@click.option("--daily", type=click.IntRange(min=1), help="How often a day it may be used.")
@click.option("--origin", type=click.Choice(["owner", "internal", "external"]), help="Of what it answers. Default: external.")
@click.option("--sensitivity", type=click.Choice(["public", "internal", "sensitive"]), help="Of what it answers. Default: internal.")
@click.option("--authorities", metavar="FILE", help="Certificates to trust beside the system's, in PEM.")
def command(session: Session, **given: Any) -> None:
    """Add an account.

    The secret itself is never given to nas: REFERENCE says where the broker finds it when the account is used.
    """
    several = {name: read_list(given[name]) for name in ("headers", "principals")}
    body = {**given, **several, "rules": list(given["rules"]) or None}
    session.show_fields(session.client.post("/v1/accounts", body), "account", "kind", "url", "secret", "rules", "origin", "sensitivity")
