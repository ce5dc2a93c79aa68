"""``nas policy validate``."""

from __future__ import annotations

from typing import TextIO

import click

from nasd.cli.failures import Exit
from nasd.cli.session import Session, verb


@verb
@click.argument("file", type=click.File(encoding="utf-8"))
def command(session: Session, file: TextIO) -> int:
    """Check a policy document.

    - reads standard input. Ends with 1 when it would not be adopted. Needs no daemon.
    """
    from nasd.offline import validate_policy

    document = validate_policy(file.read(), file.name)

    def human() -> None:
        from nasd.cli.tables import plain

        for item in document["diagnostics"]:
            print(
                f"{item['position']}: {item['severity']}: {plain(item['message'])}"
                + (f" (hint: {plain(item['hint'])})" if item["hint"] else "")
            )
        print("valid" if document["ok"] else "not valid")

    session.show(document, human)
    return Exit.OK if document["ok"] else Exit.FAILED
