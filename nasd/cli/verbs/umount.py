"""``nas umount``."""

from __future__ import annotations

from pathlib import Path

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("target", metavar="DIRECTORY|RUN")
def command(session: Session, target: str) -> None:
    """Unmount, by mountpoint or by run."""
    path = Path(target)
    named = str(path.absolute()) if path.is_absolute() or path.exists() else target
    document = session.client.post("/v1/mounts/remove", {"mountpoint": named})
    session.show(document, lambda: print(document["mountpoint"]))
