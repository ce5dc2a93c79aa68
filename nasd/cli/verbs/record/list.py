"""``nas record list``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

import click

from nasd.cli.session import Session, verb

_SHOWN = ("sequence", "time", "phase", "kind", "principal", "run", "body")


@verb
@click.option("--after", type=click.IntRange(min=0), help="Only records after this sequence.")
@click.option("-n", "--max-count", "count", type=click.IntRange(min=1), help="Show at most this many.")
@click.option("--kind", help="Only records of this kind.")
@click.option("--run", help="Only records of this run.")
@click.option("--follow", is_flag=True, help="Go on with what happens, one record a line, until interrupted.")
def command(session: Session, after: int | None, count: int | None, kind: str | None, run: str | None, follow: bool) -> None:
    """List the record, oldest first."""
    if follow:
        _follow(session, after, kind, run)
        return
    items = islice(session.client.items("/v1/records", after=after, kind=kind, run=run), count)
    session.show_table(items, *_SHOWN, empty="no records")


def _follow(session: Session, after: int | None, kind: str | None, run: str | None) -> None:
    for record in session.client.events(-1 if after is None else after):
        if kind in (None, record["kind"]) and run in (None, record.get("run")):
            print(json.dumps(record) if session.as_json else _render(record), flush=True)


def _render(record: Mapping[str, Any]) -> str:
    from nasd.cli.tables import render_value

    return "  ".join(render_value(record.get(name)) for name in _SHOWN)
