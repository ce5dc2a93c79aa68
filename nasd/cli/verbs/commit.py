"""``nas commit``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("branch", metavar="RUN|BRANCH", envvar="NAS_RUN")
@click.option("-m", "--message", help="What the commit is about.")
def command(session: Session, branch: str, message: str | None) -> None:
    """Commit what changed on a run's branch. Inside a run NAS_RUN names it."""
    document = session.client.post(place("/v1/branches/{branch}/commits", branch=branch), {"message": message})

    def human() -> None:
        print(f"{document['commit'][:12]}  {document['branch']}: {document['changed'] or 'nothing'} changed")
        for path in document.get("left_out", ()):
            session.say(f"left out: {path}")

    session.show(document, human)
