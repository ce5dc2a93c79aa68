"""``nas record export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb
from nasd.client import NoDaemon


@verb
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--after", type=click.IntRange(min=0), help="Only records after this sequence.")
def command(session: Session, folder: Path, after: int | None) -> None:
    """Write the record and what verifies it to a folder.

    `nas-verify FOLDER --log-key KEY` checks it anywhere, without this appliance. The folder must not exist, and is written by the daemon;
    without one, by this command.
    """
    with patience("Exporting the record"):
        document = _export(session, folder.absolute(), after)
    session.show_fields(document, "folder", "first", "last", "origin")


def _export(session: Session, folder: Path, after: int | None) -> dict[str, Any]:
    try:
        return session.client.post("/v1/records/export", {"folder": str(folder), "after": after})
    except NoDaemon:
        from nasd.exporting import export_unserved

        return export_unserved(session.settings, folder, after or 0)
