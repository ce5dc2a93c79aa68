"""``nas show``."""

from __future__ import annotations

import sys

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("what", metavar="COMMIT|BRANCH:PATH", default="main")
@click.option("--name-status", is_flag=True, help="One line for each path instead of patches.")
def command(session: Session, what: str, name_status: bool) -> None:
    """Show a commit with its changes, or a file of a branch."""
    branch, separator, path = what.partition(":")
    if separator:
        _show_file(session, branch, path)
        return
    document = session.client.get(place("/v1/commits/{commit}", commit=what), patch=not name_status)

    def human() -> None:
        from nasd.cli.tables import print_changes, print_commit

        print_commit(document)
        print()
        print_changes(document["changes"], patch=not name_status)

    session.show(document, human)


def _show_file(session: Session, branch: str, path: str) -> None:
    segments = "/".join(place("{name}", name=name) for name in path.strip("/").split("/"))
    target = f"{place('/v1/branches/{branch}/files', branch=branch)}/{segments}"
    if session.as_json:
        document = session.client.get(f"{target}?stat")
        session.show(document, lambda: None)
        return
    for piece in session.client.read(target):
        sys.stdout.buffer.write(piece)
