"""``nas run end``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("run", envvar="NAS_RUN")
def command(session: Session, run: str) -> None:
    """End a run.

    What is left is committed, its mounts go, its lease stops counting, its branch stays.
    """
    document = session.client.post(place("/v1/runs/{run}/end", run=run))
    session.show_fields(document, "run", "state", "commit", "left_out")
