"""``nas policy diff``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import click

from nasd.cli.failures import Exit
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
@click.argument("files", nargs=-1, required=True, type=click.File(encoding="utf-8"), metavar="[OLD] NEW")
@click.option("--exit-code", is_flag=True, help="End with 1 when the two differ.")
def command(session: Session, files: tuple[TextIO, ...], exit_code: bool) -> int:
    """Tell what a policy would decide differently.

    With one document it is compared with the policy in force. Every case that the two tell apart is asked about, so that nothing
    reported means that nothing differs; where there are too many cases, it says so. Needs no daemon.
    """
    from nasd.offline import Source, diff_here

    if len(files) > 2:
        raise click.UsageError("name one document, or two")
    sources = [Source(file.read(), file.name) for file in files]
    with patience("Comparing"):
        document = diff_here(session.settings, sources[0] if len(sources) == 2 else None, sources[-1])
    session.show(document, lambda: _print_diff(document))
    return Exit.FAILED if exit_code and not document["equal"] else Exit.OK


def _print_diff(document: Mapping[str, Any]) -> None:
    from nasd.cli.tables import plain

    for item in document["rules"]:
        print(f"rule {plain(item['rule'])} is {item['change']}" + (f": {plain(', '.join(item['what']))}" if item["what"] else ""))
    for section, title in (("wider", "easier"), ("narrower", "harder"), ("asks", "asked of others")):
        for item in document[section]:
            print(f"{title}: {plain(item['example'])}")
            print(f"  {item['from']} by {plain(item['was'])}, then {item['to']} by {plain(item['by'])}")
    for item in document["labels"]:
        names = " (its names)" if item["names"] else ""
        print(f"label: {plain(item['path'])}{names}: {item['from']}, then {item['to']}")
    for item in document["roles"]:
        members = [*(f"+{name}" for name in item["added"]), *(f"-{name}" for name in item["removed"])]
        print(f"role {plain(item['role'])}: {plain(' '.join(members))}")
    for item in document["checks"]:
        what = "is added" if item["from"] is None else "is removed" if item["to"] is None else "changes"
        print(f"check {plain(item['check'])} {what}")
    if document["equal"]:
        print("the two decide alike")
    if not document["complete"]:
        print(f"too many cases to look at all of them: {document['cells']} were looked at")
