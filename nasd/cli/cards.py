"""Gate cards, how a person answers one, and how a program waits for the answer.

1. An answer is bound to the digest of the card that was shown: when the card changes meanwhile, the answer does not count.
2. A script either names the digest it judged (``--digest``) or says that it takes the card as it is now (``--yes``).
3. Whoever waits learns which of the ends it was by the exit code alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from interfaces.port import Document
from nasd.cards import lines_of, sections_of
from nasd.cli.failures import GATE_EXITS, Exit
from nasd.cli.session import Session
from nasd.cli.tables import plain, print_fields
from nasd.client import NoDaemon, place

_STRETCH = 20
"""How many seconds one request waits."""
_PAUSE = 1.0
"""How many seconds are between requests when too many wait already, or the daemon is away."""
_ABSENCE = 60.0
"""How many seconds a daemon may be away while somebody waits."""


def print_card(gate: Mapping[str, Any]) -> None:
    """Print a gate and everything on its card."""
    if sys.stdout.isatty():
        _draw_card(gate)
    else:
        print("\n".join(lines_of(gate)))
    if proposal := gate["card"].get("proposal"):
        print(f"\nread it whole: nas proposal diff {plain(str(proposal))}")


def _draw_card(gate: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for title, rows in sections_of(gate):
        table = Table(box=None, show_header=False, pad_edge=False, title=title, title_style="bold", title_justify="left")
        table.add_column(no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        for name, text in rows:
            table.add_row(Text(name), Text(text))
        console.print(table)


def answer_gate(session: Session, gate: str, verdict: str, *, digest: str | None, yes: bool, comment: str | None) -> Document:
    """Answer a gate with ``approve`` or ``reject`` and return what came of it. Shows the card first unless a digest is named."""
    if digest is None:
        shown = session.client.get(place("/v1/gates/{gate}", gate=gate))
        digest = str(shown["digest"])
        if not yes:
            _ask(session, shown, verdict)
    return session.client.post(place("/v1/gates/{gate}/" + verdict, gate=gate), {"digest": digest, "comment": comment})


def answer_with_alike(session: Session, gate: str, verdict: str, *, digest: str | None, yes: bool, comment: str | None) -> Exit:
    """Answer a gate and every other that waits and is like it, each by its own digest; shows the card of the first, and which others."""
    if digest is not None:
        raise click.UsageError("--digest names one card: leave it out, or leave out --alike")
    shown = session.client.get(place("/v1/gates/{gate}", gate=gate))
    others = [each for each in session.client.items("/v1/gates", state="pending", alike=shown["alike"]) if each["gate"] != gate]
    if not yes:
        names = ", ".join(f"{each['gate']} (run {each['run'] or '-'})" for each in others) or "none"
        _ask(session, shown, f"{verdict}, with {len(others)} alike: {plain(names)};", count=len(others) + 1)
    answers = [{"gate": each["gate"], "digest": each["digest"]} for each in (shown, *others)]
    body = {"alike": shown["alike"], "answers": answers, "verdict": verdict, "comment": comment}
    items = list(session.client.post("/v1/gates/answers", body)["items"])
    session.show(items, lambda: _print_answers(items))
    return Exit.CONFLICT if any("error" in item for item in items) else Exit.OK


def _print_answers(items: Sequence[Mapping[str, Any]]) -> None:
    for item in items:
        became = item.get("error", {}).get("message") or item["result"].get("decision")
        print(f"{plain(str(item['gate']))}  {plain(str(became))}")


def print_answer(document: Mapping[str, Any]) -> None:
    """Print what an answer did."""
    result = document["result"]
    print_fields(document, ("gate", "state"))
    print_fields(result, ("decision", "proposal", "commit", "reason"))


def wait_for_gate(session: Session, gate: str, seconds: float | None, *, closed: bool = False) -> Document:
    """Return a gate once it is decided (with `closed`: carried out), or after some seconds (None: as long as it takes).

    A daemon that starts again meanwhile is waited for.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = _STRETCH if end is None else min(_STRETCH, end - time.monotonic())
        asked = time.monotonic()
        found = _ask_again(session, gate, wait=max(0, round(left)) or None, closed=closed or None)
        waits = found["state"] == "pending" or (closed and found["phase"] != "closed")
        if not waits or (end is not None and time.monotonic() >= end):
            return found
        if time.monotonic() - asked < _PAUSE:
            time.sleep(_PAUSE if end is None else max(0.0, min(_PAUSE, end - time.monotonic())))


def _ask_again(session: Session, gate: str, **how: Any) -> Document:
    """Return how a gate stands, from a daemon that may be away for a while. Raises as the client."""
    patient_until = time.monotonic() + _ABSENCE
    while True:
        try:
            return session.client.get(place("/v1/gates/{gate}", gate=gate), **how)
        except NoDaemon:
            if time.monotonic() > patient_until:
                raise
            time.sleep(_PAUSE)


def exit_of(gate: Mapping[str, Any]) -> Exit:
    """Return how a command ends that waited for a gate."""
    return GATE_EXITS[gate["state"]]


def _ask(session: Session, shown: Document, verdict: str, count: int = 1) -> None:
    if session.as_json or not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: name the card you judged with --digest, or take it as it is with --yes")
    print_card(shown)
    click.confirm(f"\n{verdict} {'this' if count == 1 else 'these'}?", abort=True, err=True)
