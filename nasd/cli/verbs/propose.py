"""``nas propose``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from nasd.cli.failures import DECISIONS, Exit
from nasd.cli.here import find_run, run_argument
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@run_argument
@click.option("-m", "--message", help="What is proposed, and why.")
@click.option("--target", metavar="BRANCH", help="Where it should go; main, when not given.")
def command(session: Session, run: str | None, message: str | None, target: str | None) -> int:
    """Propose a run's branch for main.

    It is committed, checked, judged, and merged when the policy says so. Ends with 0 when it is merged, 4 when a person is asked,
    3 when the policy refuses, 5 when it conflicts. Without RUN: the one NAS_RUN names, whose mount this is, or whose lease is used.
    """
    name = find_run(session, run)
    with patience("Checking and judging"):
        document = session.client.post("/v1/proposals", {"run": name, "message": message, "target": target})
    session.show(document, lambda: print_decision(document))
    return DECISIONS.get(document["decision"], Exit.FAILED)


def print_decision(document: Mapping[str, Any]) -> None:
    """Print what became of a proposal, and what can be done about it."""
    from nasd.cli.tables import plain, render_value

    print(f"{document['proposal']}  {document['decision']}")
    for name in ("reason", "policy", "gate", "hint"):
        if document.get(name):
            print(f"{name}: {plain(str(document[name]))}")
    for conflict in document.get("conflicts") or ():
        print(f"conflict: {render_value(conflict.get('path'))}: {render_value(conflict.get('why'))}")
    for check in document.get("checks") or ():
        print(f"check: {render_value(check.get('id'))} {render_value(check.get('state'))}")
    if document["decision"] == "gated":
        print(f"ask: nas gate show {document['gate']}")
