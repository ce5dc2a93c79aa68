"""``nas restore``."""

from __future__ import annotations

import click

from nasd.cli.options import read_path
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("branch", metavar="RUN|BRANCH")
@click.argument("source", metavar="COMMIT")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("-m", "--message", help="What the commit is about.")
def command(session: Session, branch: str, source: str, paths: tuple[str, ...], message: str | None) -> None:
    """Put paths back to what a commit holds.

    No path means everything. It is one more commit: nothing is lost.
    """
    body = {"source": source, "paths": [read_path(path) for path in paths], "message": message}
    document = session.client.post(place("/v1/branches/{branch}/restore", branch=branch), body)
    session.show(document, lambda: print(f"{document['commit'][:12]}  {document['changed'] or 'nothing'} changed"))
