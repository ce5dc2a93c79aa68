"""``nas record export``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--after", type=click.IntRange(min=0), help="Only records after this sequence.")
def command(session: Session, file: Path, after: int | None) -> None:
    """Write the record to a file.

    One JSON document a line, oldest first. The file must not exist.
    """
    written = 0
    with patience("Exporting the record") as told, file.open("x", encoding="utf-8") as sink:
        for record in session.client.items("/v1/records", after=after):
            sink.write(json.dumps(record, ensure_ascii=False) + "\n")
            written += 1
            told.report("records", written, 0)
    session.show_fields({"file": str(file), "records": written}, "file", "records")
