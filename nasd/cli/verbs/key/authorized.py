"""``nas key authorized``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("key", nargs=-1)
def command(session: Session, key: tuple[str, ...]) -> None:
    """Print the lines of an authorized_keys file.

    An SSH server lets the registered keys in by them.

    With KEY (its kind and its text, as sshd gives them to an AuthorizedKeysCommand as %t %k): the line of that key, if it is registered.
    """
    document = session.client.get("/v1/keys/authorized", key=" ".join(key) or None)
    session.show(document, lambda: print(document["text"], end=""))
