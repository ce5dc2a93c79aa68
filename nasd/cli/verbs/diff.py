"""``nas diff``."""

from __future__ import annotations

import sys

import click

from nasd.cli.here import find_run
from nasd.cli.options import read_path
from nasd.cli.session import Session, verb


@verb
@click.argument("first", metavar="[RUN|COMMIT]", required=False, envvar="NAS_RUN")
@click.argument("second", metavar="[COMMIT]", required=False)
@click.option("--uncommitted", is_flag=True, help="Only what the branch has not committed.")
@click.option("--path", help="Only this path and what is below it.")
@click.option("--name-status", is_flag=True, help="One line for each path instead of patches.")
def command(session: Session, first: str | None, second: str | None, uncommitted: bool, path: str | None, name_status: bool) -> None:
    """Compare a run with main, or two commits.

    Without RUN: the one NAS_RUN names, whose mount this is, or whose lease is used.
    """
    first = find_run(session, first)
    if second and uncommitted:
        raise click.UsageError("--uncommitted goes with one branch, not with two commits")
    compared = {"old": first, "new": second} if second else {"branch": first} if uncommitted else {"run": first}
    changes = list(session.client.items("/v1/diff", **compared, path=path and read_path(path), patch=not name_status))

    def human() -> None:
        from nasd.cli.tables import print_changes

        print_changes(changes, patch=not name_status)
        if "run" in compared and sys.stdout.isatty() and (waiting := list(session.client.items("/v1/diff", branch=first))):
            session.say(f"not committed yet: {len(waiting)} more (nas diff --uncommitted)")

    session.show(changes, human)
