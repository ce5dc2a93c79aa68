"""``nas lease narrow``."""

from __future__ import annotations

import time
from typing import Any

import click

from nasd.cli.options import read_scope, scope_options
from nasd.cli.session import Session, require_secret, verb
from nasd.client import place


@verb
@click.argument("lease", required=False)
@scope_options
@click.option("--offline", is_flag=True, help="Narrow the secret itself, without the server; - as LEASE reads it from standard input.")
def command(session: Session, lease: str | None, offline: bool, **scope: Any) -> None:
    """Derive a narrower lease, for a sub-agent.

    Its secret is printed this once. Nothing can be widened.

    With --offline nothing is asked and nothing is told: the secret in force (--lease-file, NAS_LEASE) or, with - as LEASE, the one on
    standard input is narrowed here. The server learns of the lease when it is first used, and takes the narrower of both in everything.
    """
    if offline:
        from nasd.narrowing import narrow_offline

        document = narrow_offline(session.offered_secret(lease), read_scope(scope), int(time.time()))
        session.show_fields(document, *(name for name in ("lease", "parent", "paths", "actions", "expires", "secret") if name in document))
        return
    if lease is None:
        raise click.UsageError("name a lease: `nas lease list` shows them; or --offline, for the one it acts with")
    document = session.client.post(place("/v1/leases/{lease}/narrow", lease=lease), read_scope(scope))
    require_secret(document, document["lease"], f"nas lease revoke {document['lease']}")
    session.show_fields(document, "lease", "parent", "run", "paths", "actions", "expires", "secret")
