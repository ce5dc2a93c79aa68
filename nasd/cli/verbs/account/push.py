"""``nas account push``."""

from __future__ import annotations

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("account")
@click.argument("repository")
@click.argument("run")
@click.option("--branch", required=True, help="The remote's branch, which moves forward only.")
def command(session: Session, account: str, repository: str, run: str, branch: str) -> None:
    """Have the broker push a run's branch to a git remote.

    REPOSITORY is below the account's destination, such as org/project.git. The labels of every commit that the remote is not known to
    have are part of the decision. A push that a rule asks about becomes a gate (exit code 4); repeat it once it is approved.
    """
    with patience("Pushing"):
        body = {"repository": repository, "run": run, "branch": branch}
        document = session.client.post(place("/v1/accounts/{account}/push", account=account), body)
    session.show_fields(document, "branch", "commit", "commits", "told")
