"""``nas serve``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.option("--background", is_flag=True, help="Return once the daemon answers; it stays.")
@click.option("--listen", metavar="HOST:PORT", help="Where the doors are; port 0 takes a free one.")
def command(session: Session, background: bool, listen: str | None) -> None:
    """Run the daemon.

    It serves the HTTP API, WebDAV, git, S3 and MCP on one port of the loopback, keeps mounts alive and does the jobs. One daemon
    for each data directory. SIGTERM or `nas stop` drains it. Beyond the loopback it serves with TLS, or behind a declared proxy.
    """
    from nasd.daemon import serve

    document = serve(session.settings_with(listen=listen), background=background)
    session.show(document, lambda: session.say("serving" if background else "stopped"))
