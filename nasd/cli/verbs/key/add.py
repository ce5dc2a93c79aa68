"""``nas key add``."""

from __future__ import annotations

from typing import IO

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--principal", help="Whom the key is for; without it, and without --lease, for whoever runs this.")
@click.option("--lease", help="The lease the key is for; it falls with it.")
@click.option("--label", help="What it is for.")
def command(session: Session, file: IO[str], principal: str | None, lease: str | None, label: str | None) -> None:
    """Register an SSH public key for git.

    FILE holds it in one line; - is standard input.
    """
    text = file.read(16384).strip()
    document = session.client.post("/v1/keys", {"key": text, "principal": principal, "lease": lease, "label": label})
    session.show_fields(document, "key", "fingerprint", "principal", "lease", "label")
