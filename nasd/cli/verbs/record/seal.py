"""``nas record seal``."""

from __future__ import annotations

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.option("--older-than", required=True, metavar="DURATION", help="Seal what is older, such as 90d.")
def command(session: Session, older_than: str) -> None:
    """Move old records out of the database into sealed files.

    They stay part of the record: listed, verified, exported. The setting record_age does this by itself.
    """
    with patience("Sealing old records"):
        document = session.client.post("/v1/records/seal", {"older_than": older_than})
    session.show_table(document["sealed"], "first", "last", "file", empty="nothing is that old")
