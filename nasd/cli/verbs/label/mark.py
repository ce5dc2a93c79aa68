"""``nas label mark``."""

from __future__ import annotations

import click

from nasd.cli.options import label_options
from nasd.cli.session import Session, verb


@verb
@click.argument("pattern")
@label_options
def command(session: Session, pattern: str, origin: str | None, sensitivity: str | None) -> None:
    """Raise the label of every path of a pattern.

    It counts from now on, also for files to come. PATTERN is as in the policy: inbox/**, or one path.
    """
    document = session.client.post("/v1/labels/marks", {"pattern": pattern, "origin": origin, "sensitivity": sensitivity})
    session.show_fields(document, "paths", "origin", "sensitivity")
