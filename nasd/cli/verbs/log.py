"""``nas log``."""

from __future__ import annotations

from itertools import islice

import click

from nasd.cli.options import read_path
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("branch", metavar="[BRANCH|COMMIT]", default="main")
@click.option("-n", "--max-count", "count", type=click.IntRange(min=1), help="Show at most this many.")
@click.option("--path", help="Only commits that changed this path or something below it.")
@click.option("--oneline", is_flag=True, help="One line for each commit.")
def command(session: Session, branch: str, count: int | None, path: str | None, oneline: bool) -> None:
    """Show the history of a branch, newest first."""
    found = session.client.items(
        place("/v1/branches/{branch}/commits", branch=branch), path=path and read_path(path), limit=min(count or 100, 1000)
    )
    commits = list(islice(found, count))

    def human() -> None:
        from nasd.cli.tables import plain, print_commit

        for position, commit in enumerate(commits):
            if oneline:
                print(f"{commit['commit'][:12]} {plain(commit['message'].partition(chr(10))[0])}")
                continue
            if position:
                print()
            print_commit(commit)

    session.show(commits, human)
