"""``nas commit``."""

from __future__ import annotations

import click

from nasd.cli.here import find_run, run_argument
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@run_argument
@click.option("-m", "--message", help="What the commit is about.")
def command(session: Session, run: str | None, message: str | None) -> None:
    """Commit what changed on a run's branch.

    Without RUN: the one NAS_RUN names, whose mount this is, or whose lease is used.
    """
    branch = find_run(session, run)
    document = session.client.post(place("/v1/branches/{branch}/commits", branch=branch), {"message": message})

    def human() -> None:
        print(f"{document['commit'][:12]}  {document['branch']}: {document['changed'] or 'nothing'} changed")
        for path in document.get("left_out", ()):
            session.say(f"left out: {path}")

    session.show(document, human)
