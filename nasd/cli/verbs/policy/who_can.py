"""``nas policy who-can``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import click

from nasd.cli.options import read_path
from nasd.cli.session import Session, verb


@verb
@click.argument("action")
@click.argument("path", required=False)
@click.option("--policy", "file", type=click.File(encoding="utf-8"), help="Ask another policy than the one in force.")
@click.option("--label", metavar="ORIGIN/SENSITIVITY", help="The label of what is there, instead of what the policy says.")
@click.option("--destination", metavar="ACCOUNT", help="For egress: the account it goes to.")
@click.option("--protected", is_flag=True, help="On a protected branch.")
def command(
    session: Session, action: str, path: str | None, file: TextIO | None, label: str | None, destination: str | None, protected: bool
) -> None:
    """Tell which principals and live leases may do something.

    Whoever may not, and could start a run that may, is told so. With --policy and without a data directory, those are asked about whom
    the policy names. Needs no daemon.
    """
    from nasd.offline import Source, who_can_here

    source = Source(file.read(), file.name) if file else None
    asked = {"action": action, "path": path and read_path(path), "label": label, "destination": destination, "protected": protected}
    items = who_can_here(session.settings, source, asked)
    rows = [{**item, "as": _acting(item), "how": _how(item)} for item in items]
    session.show(items, lambda: _print_rows(rows))


def _print_rows(rows: list[dict[str, Any]]) -> None:
    from nasd.cli.tables import print_table

    print_table(rows, ("who", "as", "effect", "policy", "how"), "nobody is known")


def _acting(item: Mapping[str, Any]) -> str:
    behalf = f" for {item['on_behalf_of']}" if item["on_behalf_of"] else ""
    return f"{item['lease'] or item['kind']}{behalf}"


def _how(item: Mapping[str, Any]) -> str:
    if item["effect"] == "gate":
        return f"{item['required_role']} is asked"
    runs = [f"{run['role']}{'' if run['effect'] == 'allow' else ', after a question'}" for run in item["obtainable"]]
    return f"by starting a run of {', '.join(runs)}" if runs else item["reason"]
