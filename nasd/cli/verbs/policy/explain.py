"""``nas policy explain``."""

from __future__ import annotations

from typing import TextIO

import click

from nasd.cli.options import read_path
from nasd.cli.session import Session, verb


@verb
@click.argument("action")
@click.argument("path", required=False)
@click.option("--principal", help="Ask for this principal, instead of whoever runs the command.")
@click.option("--lease", help="Ask for this lease.")
@click.option("--run", help="Ask for this run's lease.")
@click.option("--policy", "file", type=click.File(encoding="utf-8"), help="Ask another policy than the one in force.")
def command(
    session: Session,
    action: str,
    path: str | None,
    principal: str | None,
    lease: str | None,
    run: str | None,
    file: TextIO | None,
) -> None:
    """Explain what the policy says about an action.

    Names every rule that was considered. Nothing happens.
    """
    text = file.read() if file else None
    body = {"action": action, "path": path and read_path(path), "principal": principal, "lease": lease, "run": run, "text": text}
    document = session.client.post("/v1/policy/explain", body)

    def human() -> None:
        from nasd.cli.tables import print_fields, print_table

        print_fields(document, ("effect", "reason", "rule", "policy", "hint"))
        print()
        print_table(document["considered"], ("rule", "position", "matched", "why"), "no rule speaks of this action")

    session.show(document, human)
