"""``nas verify``."""

from __future__ import annotations

import click

from nasd.cli.failures import Exit
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.option("--anchor", metavar="SEQUENCE:HASH", help="Also prove that the chain still contains this head, from an earlier verification.")
def command(session: Session, anchor: str | None) -> int:
    """Verify the record's chain and name its first bad entry.

    Ends with 1 when there is one. Keep the anchor it prints somewhere else: with --anchor a later verification proves that nothing
    before it was taken away.
    """
    with patience("Verifying the record"):
        document = session.client.post("/v1/records/verify", {"anchor": anchor})
    anchor_now = {"anchor": f"{document['records']}:{document['head']}"} if document["head"] else {}
    session.show_fields(document | anchor_now, "ok", "records", "first_bad", "why", "completeness", "head", "anchor")
    return Exit.OK if document["ok"] else Exit.FAILED
