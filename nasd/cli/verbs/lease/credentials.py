"""``nas lease credentials``."""

from __future__ import annotations

import click

from nasd.cli.here import own_lease
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@click.argument("lease", required=False)
@click.option("--for", "door", type=click.Choice(["s3", "git", "webdav", "mcp", "mount"]), required=True, help="The client's protocol.")
@click.option("--offline", is_flag=True, help="Derive them from the secret itself, without the server; with - as LEASE it is read.")
def command(session: Session, lease: str | None, door: str, offline: bool) -> None:
    """Print what another client needs to use a lease.

    Ready to paste: into a shell for S3, git, WebDAV and mounts, into the client's configuration for MCP.

    Without LEASE: of the lease it acts with. What is printed is as good as the lease itself, at that door, and falls with it. --offline
    prints the same values by their names, without addresses.
    """
    if offline:
        from nasd.narrowing import derive_offline

        derived = derive_offline(session.offered_secret(lease), door)
        session.show_fields(derived, *derived)
        return
    document = session.client.post(place("/v1/leases/{lease}/credentials", lease=lease or own_lease(session)), {"for": door})
    session.show(document, lambda: print(document["text"], end=""))
