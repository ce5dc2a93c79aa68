"""``nas gc``."""

from __future__ import annotations

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
def command(session: Session, dry_run: bool) -> None:
    """Remove branches that are merged, or past their time.

    What is merged is proven by content; what is not goes to the trash first, and from there after a period.
    """
    with patience("Collecting"):
        document = session.client.post("/v1/gc", {"dry_run": dry_run})

    def human() -> None:
        from nasd.cli.tables import render_value

        for name, word in (
            ("removed", "would remove" if dry_run else "removed"),
            ("trashed", "would trash" if dry_run else "trashed"),
            ("kept", "kept"),
        ):
            for item in document[name]:
                print(f"{word}  {render_value(item['branch'])}: {render_value(item['why'])}")
        print(f"{document['bytes']} bytes {'would be ' if dry_run else ''}freed")

    session.show(document, human)
