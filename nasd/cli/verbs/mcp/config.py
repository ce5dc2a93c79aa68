"""``nas mcp config``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from nasd.cli.doors import door_url
from nasd.cli.mcp_clients import CLIENTS, Endpoint, render_client
from nasd.cli.session import Session, verb


@verb
@click.option("--client", type=click.Choice(list(CLIENTS)), default="claude", show_default=True, help="The client to configure.")
@click.option("--stdio", is_flag=True, help="Over a program the client starts, instead of over HTTP.")
@click.option("--secret-file", metavar="FILE", help="The client reads the secret from FILE (with --stdio), instead of from NAS_LEASE.")
@click.option("--url", envvar="NAS_MCP_URL", help="Where MCP is, instead of at the daemon of this machine.")
def command(session: Session, client: str, stdio: bool, secret_file: str | None, url: str | None) -> None:
    """Print the configuration of an MCP client, ready to paste.

    It names where the secret is and never holds it: put the lease's secret into NAS_LEASE of the client's environment, or into a
    file of its own that --secret-file names.
    """
    program = shutil.which("nas") or str(Path(sys.argv[0]).absolute())
    file = str(Path(secret_file).absolute()) if secret_file else ""
    endpoint = Endpoint(url or door_url(session, "mcp"), program, file)
    document = render_client(client, "stdio" if stdio or file else "http", endpoint)
    if not session.as_json:
        session.say(f"{document['title']}, over {document['transport']}: {document['place']}")
    session.show(document, lambda: print(document["text"], end=""))
