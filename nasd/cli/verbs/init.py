"""``nas init``."""

from __future__ import annotations

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.option("--import", "source", metavar="DIR|GIT-URL", help="Begin main with a directory, or with a git repository and its history.")
def command(session: Session, source: str | None) -> None:
    """Make the data directory, the owner and main.

    Without --import main begins with nothing but the default policy. Needs no daemon.
    """
    from nasd.setup import initialise

    with patience(f"Importing {source}" if source else "Making the data directory") as told:
        document = initialise(session.settings, source, told.report)
    session.show_fields(document, "home", "owner", "main", "imported", "policy")
