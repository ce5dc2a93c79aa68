"""``nas propose``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from nasd.cli.failures import DECISIONS, GATE_EXITS, Exit
from nasd.cli.here import find_run, run_argument
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb
from nasd.client import place


@verb
@run_argument
@click.option("-m", "--message", help="What is proposed, and why.")
@click.option("--wait", is_flag=True, help="When a person is asked, wait for the answer and for what follows from it.")
@click.option("--target", metavar="BRANCH", help="Where it should go; main, when not given.")
def command(session: Session, run: str | None, message: str | None, wait: bool, target: str | None) -> int:
    """Propose a run's branch for main.

    It is committed, checked, judged, and merged when the policy says so. Ends with 0 when it is merged, 4 when a person is asked,
    3 when the policy refuses, 5 when it conflicts; with --wait, when it was not approved, as nas gate wait does. Without RUN: the one
    NAS_RUN names, whose mount this is, or whose lease is used.
    """
    name = find_run(session, run)
    with patience("Checking and judging"):
        document: Mapping[str, Any] = session.client.post("/v1/proposals", {"run": name, "message": message, "target": target})
    gate = None
    if wait and document["decision"] == "gated":
        document, gate = _wait(session, document)
    session.show(document, lambda: print_decision(document))
    if gate is not None and gate["state"] != "approved":
        return GATE_EXITS[gate["state"]]
    return DECISIONS.get(document["decision"], Exit.FAILED)


def _wait(session: Session, document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the proposal and its gate once people decided and that was carried out; a question that took its place is waited for, too."""
    from nasd.cli.cards import wait_for_gate

    while True:
        session.say(f"waiting for {document['gate']}: nas gate show {document['gate']}")
        with patience("Waiting for a person"):
            gate = wait_for_gate(session, document["gate"], None, closed=True)
        document = session.client.get(place("/v1/proposals/{proposal}", proposal=document["proposal"]))
        if document["decision"] != "gated" or document["gate"] == gate["gate"]:
            return document, gate


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
