"""``nas account fetch``."""

from __future__ import annotations

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("account")
@click.argument("repository")
@click.argument("run")
@click.option("--branch", default="main", show_default=True, help="The remote's branch.")
def command(session: Session, account: str, repository: str, run: str, branch: str) -> None:
    """Have the broker fetch from a git remote into a run.

    What the remote has is merged where both went on. REPOSITORY is below the account's destination, such as org/project.git. What
    comes in is external: the run is tainted by it.
    """
    with patience("Fetching"):
        body = {"repository": repository, "run": run, "branch": branch}
        document = session.client.post(place("/v1/accounts/{account}/fetch", account=account), body)
    for notice in document["notices"]:
        session.say(notice)
    session.show_fields(document, "branch", "commit", "commits", "label")
