"""Gate cards, and how a person answers one.

1. An answer is bound to the digest of the card that was shown: when the card changes meanwhile, the answer does not count.
2. A script either names the digest it judged (``--digest``) or says that it takes the card as it is now (``--yes``).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from interfaces.port import Document
from nasd.cli.session import Session
from nasd.cli.tables import plain, print_changes, print_fields
from nasd.client import place

_HEAD = ("gate", "state", "required_role", "deadline", "fallback", "asked_by", "answered_by", "comment", "digest")
_CARD = (
    "what",
    "who",
    "on_behalf_of",
    "why",
    "purpose",
    "asks",
    "rule",
    "files",
    "deletes",
    "bytes",
    "checks",
    "twins",
    "on_approve",
    "on_reject",
)
_SEPARATE = ("changes",)


def print_card(gate: Mapping[str, Any]) -> None:
    """Print a gate and everything on its card."""
    card = gate["card"]
    print_fields(gate, _HEAD)
    print()
    print_fields(card, _order_card(card))
    if card.get("changes"):
        print("\nchanges:")
        _print_card_changes(card["changes"])
    if card.get("proposal"):
        print(f"\nread it whole: nas proposal diff {plain(str(card['proposal']))}")


def answer_gate(session: Session, gate: str, verdict: str, *, digest: str | None, yes: bool, comment: str | None) -> Document:
    """Answer a gate with ``approve`` or ``reject`` and return what came of it. Shows the card first unless a digest is named."""
    if digest is None:
        shown = session.client.get(place("/v1/gates/{gate}", gate=gate))
        digest = str(shown["digest"])
        if not yes:
            _ask(session, shown, verdict)
    return session.client.post(place("/v1/gates/{gate}/" + verdict, gate=gate), {"digest": digest, "comment": comment})


def _order_card(card: Mapping[str, Any]) -> list[str]:
    """Return the members of a card that say something: first what a person judges by, then identities."""
    names = [*_CARD, *(name for name in card if name not in {*_CARD, *_SEPARATE})]
    return [name for name in names if card.get(name) not in (None, "", [], 0)]


def print_answer(document: Mapping[str, Any]) -> None:
    """Print what an answer did."""
    result = document["result"]
    print_fields(document, ("gate", "state"))
    print_fields(result, ("decision", "proposal", "commit", "reason"))


def _ask(session: Session, shown: Document, verdict: str) -> None:
    if session.as_json or not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: name the card you judged with --digest, or take it as it is with --yes")
    print_card(shown)
    click.confirm(f"\n{verdict} this?", abort=True, err=True)


def _print_card_changes(changes: Any) -> None:
    if all(isinstance(change, Mapping) and {"kind", "path"} <= change.keys() for change in changes):
        print_changes(changes, patch=False)
        return
    for change in changes:
        print(plain(str(change)))
