"""Give an MCP client what it works with."""

from __future__ import annotations

import sys

import click

from nasd.cli.session import Session, verb
from nasd.errors import Misconfigured


@verb
@click.option("--url", envvar="NAS_MCP_URL", help="Where MCP is, instead of at the daemon of this machine.")
def command(session: Session, url: str | None) -> None:
    """Speak MCP over standard input and output.

    It is for clients that start a program. Messages go to the daemon's port (--url: to another one) with the secret in force, until
    standard input closes. Put `nas mcp` into the client's configuration; `nas mcp config` prints it.
    """
    import anyio

    from nasd.cli.doors import door_url
    from nasd.cli.stdio import bridge_standard_streams

    secret = session.secret
    if secret is None:
        raise Misconfigured("no credential is there", hint="set NAS_LEASE, or name the file that holds it with --lease-file")
    target = url or door_url(session, "mcp")
    if sys.stdin.isatty():
        session.say(f"speaking MCP with {target}; an MCP client starts this, a person reads `nas mcp config`")
    anyio.run(bridge_standard_streams, target, secret)
