"""``nas label show``."""

from __future__ import annotations

import click

from nasd.cli.options import read_path
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("path")
@click.option("--branch", default="main", show_default=True, help="The branch it is on: a branch or a run.")
@click.option("--at", metavar="COMMIT", help="The commit it is in, instead of the branch as it is now.")
def command(session: Session, path: str, branch: str, at: str | None) -> None:
    """Show the label of a file and where it comes from.

    Everything that is known of it is joined: the less trusted origin, the higher sensitivity. An endorsement stands instead of the rest.
    """
    document = session.client.get(place("/v1/branches/{branch}/label", branch=branch), path=read_path(path), at=at)

    def human() -> None:
        from nasd.cli.tables import print_fields, print_table

        print_fields(document, ("path", "origin", "sensitivity"))
        if document["because"]:
            print()
            print_table(document["because"], ("source", "origin", "sensitivity", "place"), "")

    session.show(document, human)
