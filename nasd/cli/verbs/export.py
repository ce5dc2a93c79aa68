"""``nas export``."""

from __future__ import annotations

from pathlib import Path

import click

from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.argument("branch")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(["dir", "git"]), default="dir", show_default=True, help="A plain directory, or a repository."
)
def command(session: Session, branch: str, directory: Path, form: str) -> None:
    """Write a branch as a directory or as a git repository.

    The directory is one of the daemon's machine, empty or missing.
    """
    body = {"branch": branch, "directory": str(directory.absolute()), "format": form}
    with patience(f"Exporting {branch}"):
        document = session.client.post("/v1/exports", body)
    session.show_fields(document, "directory", "format", "branch", "commit", "files", "commits")
