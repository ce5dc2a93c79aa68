"""``nas record redact``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("sequence", type=click.IntRange(min=1))
@click.option("--reason", required=True, help="Why; it stands in the record.")
def command(session: Session, sequence: int, reason: str) -> None:
    """Take the body of a record away, for good.

    Its hash and the chain stay as they are: what is left proves that something was there, and not what. This cannot be undone.
    """
    document = session.client.post(f"/v1/records/{sequence}/redact", {"reason": reason})
    session.show_fields(document, "sequence", "commitment")
