"""``nas diff``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("old", metavar="RUN|COMMIT", envvar="NAS_RUN")
@click.argument("new", metavar="[COMMIT]", required=False)
@click.option("--uncommitted", is_flag=True, help="Only what the branch has not committed.")
@click.option("--path", help="Only this path and what is below it.")
@click.option("--name-status", is_flag=True, help="One line for each path instead of patches.")
def command(session: Session, old: str, new: str | None, uncommitted: bool, path: str | None, name_status: bool) -> None:
    """Compare a run with main, or two commits."""
    if new and uncommitted:
        raise click.UsageError("--uncommitted goes with one branch, not with two commits")
    compared = {"old": old, "new": new} if new else {"branch": old} if uncommitted else {"run": old}
    changes = list(session.client.items("/v1/diff", **compared, path=path, patch=not name_status))

    def human() -> None:
        from nasd.cli.tables import print_changes

        print_changes(changes, patch=not name_status)

    session.show(changes, human)
