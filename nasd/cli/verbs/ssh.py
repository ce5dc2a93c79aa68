"""``nas ssh``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("key")
def command(session: Session, key: str) -> None:
    """Serve one git command of an SSH client.

    An SSH server runs this as forced command; people do not.

    KEY is the name of a registered key. The command is what the client asked the server for (SSH_ORIGINAL_COMMAND).
    """
    from nasd.ssh_session import serve_ssh

    asked, protocol = session.ssh_request
    serve_ssh(session.settings, key, asked, protocol)
