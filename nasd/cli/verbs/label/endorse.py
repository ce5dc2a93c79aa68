"""``nas label endorse``."""

from __future__ import annotations

import click

from nasd.cli.failures import Exit
from nasd.cli.options import label_options, read_path
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("path")
@label_options
@click.option("--reason", required=True, help="Why; it is on the card of the question.")
@click.option("--branch", default="main", show_default=True, help="The branch it is on: a branch or a run.")
@click.option("--at", metavar="COMMIT", help="The commit it is in, instead of the head of the branch.")
def command(session: Session, path: str, origin: str | None, sensitivity: str | None, reason: str, branch: str, at: str | None) -> int:
    """Ask people to lower the label of a file.

    It is about exactly the bytes that are committed there, at exactly this path; the next version has its label anew. This opens a gate and
    ends with exit code 4.
    """
    body = {"path": read_path(path), "origin": origin, "sensitivity": sensitivity, "reason": reason, "at": at}
    document = session.client.post(place("/v1/branches/{branch}/label/endorse", branch=branch), body)
    session.show_fields(document, "path", "before", "after", "gate", "required_role", "digest")
    return Exit.GATED
