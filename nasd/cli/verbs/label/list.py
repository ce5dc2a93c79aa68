"""``nas label list``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.option("--branch", default="main", show_default=True, help="Whose files are looked at: a branch or a run.")
def command(session: Session, branch: str) -> None:
    """List what is labelled.

    First the patterns of the policy and the marks, then the files at the head of the branch of which something was noted.
    """
    items = session.client.items(place("/v1/branches/{branch}/labels", branch=branch))
    session.show_table(items, "paths", "source", "origin", "sensitivity", "place", empty="nothing is labelled")
