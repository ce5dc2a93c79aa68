"""``nas logout``."""

from __future__ import annotations

from pathlib import Path

import click

from nasd.cli.session import Session, verb


@verb
@click.option("--from", "target", type=click.Path(path_type=Path), help="The file with the token, instead of the one of `nas login`.")
def command(session: Session, target: Path | None) -> None:
    """End a login and remove its file."""
    from nasd.config import read_secret

    path = target or session.login_file
    document = session.client_with(read_secret(path)).post("/v1/logins/end", {})
    path.unlink()
    session.show_fields(document, "token", "principal", "revoked")
