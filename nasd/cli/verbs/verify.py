"""``nas verify``."""

from __future__ import annotations

from typing import Any

import click

from nasd.cli.failures import Exit
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb
from nasd.client import NoDaemon


@verb
@click.option("--anchor", metavar="SEQUENCE:HASH", help="Also prove that the chain still contains this head, from an earlier verification.")
def command(session: Session, anchor: str | None) -> int:
    """Verify the record's chain and name its first bad entry.

    Ends with 1 when there is one. Keep the anchor it prints somewhere else: with --anchor a later verification proves that nothing
    before it was taken away.
    """
    with patience("Verifying the record"):
        document = _verify(session, anchor)
    anchor_now = {"anchor": f"{document['records']}:{document['head']}"} if document["head"] else {}
    session.show_fields(document | anchor_now, "ok", "records", "first_bad", "why", "completeness", "head", "anchor")
    return Exit.OK if document["ok"] else Exit.FAILED


def _verify(session: Session, anchor: str | None) -> dict[str, Any]:
    """Ask the daemon; where none runs, read the record of the data directory itself."""
    try:
        return session.client.post("/v1/records/verify", {"anchor": anchor})
    except NoDaemon:
        from nasd.verifying import verify_record

        return verify_record(session.settings, anchor)
