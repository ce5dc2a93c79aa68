"""``nas record prove``."""

from __future__ import annotations

from pathlib import Path

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("sequence", type=click.IntRange(min=1))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def command(session: Session, sequence: int, file: Path) -> None:
    """Write the proof that a record is in the log.

    `nas-verify FILE --log-key KEY` checks it anywhere, without this appliance. The file must not exist.
    """
    document = session.client.get(f"/v1/records/{sequence}/proof")
    with file.open("x", encoding="utf-8") as sink:
        sink.write(document["proof"])
    session.show_fields(
        {"file": str(file)} | {name: document[name] for name in ("sequence", "size", "origin")}, "file", "sequence", "size", "origin"
    )
