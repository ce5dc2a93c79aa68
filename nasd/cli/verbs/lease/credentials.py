"""``nas lease credentials``."""

from __future__ import annotations

import click

from nasd.cli.here import own_lease
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("lease", required=False)
@click.option("--for", "door", type=click.Choice(["s3", "git", "webdav", "mcp"]), required=True, help="The client's protocol.")
def command(session: Session, lease: str | None, door: str) -> None:
    """Print what another client needs to use a lease.

    Ready to paste: into a shell for S3, git and WebDAV, into the client's configuration for MCP.

    Without LEASE: of the lease it acts with. What is printed is as good as the lease itself, and falls with it.
    """
    document = session.client.post(place("/v1/leases/{lease}/credentials", lease=lease or own_lease(session)), {"for": door})
    session.show(document, lambda: print(document["text"], end=""))
