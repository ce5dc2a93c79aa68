"""``nas policy replay``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import click

from nasd.cli.failures import Exit
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.argument("file", type=click.File(encoding="utf-8"), required=False)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Look at the last N records only.")
def command(session: Session, file: TextIO | None, last: int | None) -> int:
    """Take recorded decisions again, also by another policy.

    The policy of the day, which stays archived, must say the same again to the bit: ends with 1 when it does not. With FILE also tells
    what a proposed policy would have decided otherwise. Needs no daemon.
    """
    from nasd.offline import Source, replay_here

    source = Source(file.read(), file.name) if file else None
    with patience("Taking decisions again"):
        document = replay_here(session.settings, source, last)
    session.show(document, lambda: _print_replay(document, proposed=source is not None))
    return Exit.OK if document["ok"] else Exit.FAILED


def _print_replay(document: Mapping[str, Any], *, proposed: bool) -> None:
    from nasd.cli.tables import plain, print_fields

    print_fields(document, ("ok", "decisions", "confirmed", "incomplete", "contradicted", "unknown_policy"))
    for trouble in document["troubles"]:
        print(f"record {trouble['sequence']} ({trouble['kind']}): {plain(trouble['why'])}")
    for item in document["moved"]:
        print(f"{item['count']} would go from {item['from']} to {item['to']}")
    for item in document["examples"]:
        print(f"record {item['sequence']} ({item['kind']}): {plain(item['example'])}")
        print(f"  {item['from']} by {plain(item['was'])}, then {item['to']} by {plain(item['by'])}")
    if proposed and not document["moved"]:
        print("the proposed policy would have decided alike")
