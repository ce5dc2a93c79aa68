"""``nas init``."""

from __future__ import annotations

import click

from nasd.cli.options import label_options
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.option("--import", "source", metavar="DIR|GIT-URL", help="Begin main with a directory, or with a git repository and its history.")
@label_options
def command(session: Session, source: str | None, origin: str | None, sensitivity: str | None) -> None:
    """Make the data directory, the owner and main.

    Without --import main begins with nothing but the default policy. With --origin or --sensitivity what is imported, and all beside it, is
    marked with that label. Needs no daemon.
    """
    from nasd.setup import initialise

    if (origin or sensitivity) and not source:
        raise click.UsageError("--origin and --sensitivity are about what is imported: name it with --import")
    with patience(f"Importing {source}" if source else "Making the data directory") as told:
        document = initialise(session.settings, source, told.report, (origin, sensitivity))
    session.show_fields(document, "home", "owner", "main", "imported", "policy")
