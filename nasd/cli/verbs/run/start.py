"""``nas run start``."""

from __future__ import annotations

from typing import Any

import click

from nasd.cli.options import read_scope, scope_options
from nasd.cli.session import Session, require_secret, verb


@verb
@click.argument("role")
@scope_options
@click.option("--gate", help="The gate that was approved for exactly this request.")
def command(session: Session, role: str, gate: str | None, **scope: Any) -> None:
    """Start a run: a branch of its own, and a lease.

    The branch begins at main's head; the secret of the lease is printed this once. A request outside of what the policy grants
    becomes a gate (exit code 4); repeat it with --gate once it is approved.
    """
    body = {"role": role, "gate": gate, **read_scope(scope)}
    document = session.client.post("/v1/runs", body)
    require_secret(document, document["run"], f"nas run end {document['run']}")
    session.show_fields(document, "run", "branch", "lease", "paths", "actions", "expires", "secret")
