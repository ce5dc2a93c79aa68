"""``nas policy validate``."""

from __future__ import annotations

from typing import TextIO

import click

from nasd.cli.failures import Exit
from nasd.cli.session import Session, verb


@verb
@click.argument("file", type=click.File(encoding="utf-8"), required=False)
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@click.option("--here", is_flag=True, help="Also look names up in the data directory.")
def command(session: Session, file: TextIO | None, strict: bool, here: bool) -> int:
    """Check a policy document, or the one in force.

    - reads standard input. Finds what does not compile, and what is said in vain: rules that never decide, questions nobody could answer,
    names nobody has. Ends with 1 when it would not be adopted. Needs no daemon.
    """
    from nasd.offline import Source, validate_here, validate_policy

    source = Source(file.read(), file.name) if file else None
    document = validate_policy(source.text, source.name) if source and not here else validate_here(session.settings, source)

    def human() -> None:
        from nasd.cli.tables import plain

        for item in document["diagnostics"]:
            hint = f" (hint: {plain(item['hint'])})" if item["hint"] else ""
            print(f"{item['position']}: {item['severity']}: {plain(item['message'])} [{item['code']}]{hint}")
        print("valid" if document["ok"] else "not valid")

    session.show(document, human)
    return Exit.OK if document["ok"] and not (strict and document["diagnostics"]) else Exit.FAILED
