"""``nas run checkout``."""

from __future__ import annotations

from pathlib import Path

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("run")
@click.argument("directory", type=click.Path(path_type=Path))
def command(session: Session, run: str, directory: Path) -> None:
    """Write a plain copy of a run's branch into a directory.

    For where no mount is possible; the directory is empty or missing. Changes to the copy do not find their way back.
    """
    with patience("Writing the copy"):
        document = session.client.post(place("/v1/runs/{run}/checkout", run=run), {"directory": str(directory.absolute())})
    session.show_fields(document, "directory", "commit", "files")
