"""``nas gate bypass``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb
from nasd.client import place

_COLUMNS = ("bypass", "state", "rule", "by", "reason", "expires")


@verb
@click.option("--rule", help="The id of the rule that should ask nobody.")
@click.option("--for", "lasting", metavar="DURATION", help="For how long; a day at most.")
@click.option("--reason", help="Why; it is recorded.")
@click.option("--end", metavar="BYPASS", help="End a bypass now.")
def command(session: Session, rule: str | None, lasting: str | None, reason: str | None, end: str | None) -> None:
    """Have a rule ask nobody for a while.

    Only the owner can, for one rule as it reads now; a rule that refuses cannot be bypassed. Every act under a bypass is recorded with it.
    With --end it is over; without options every bypass is listed.
    """
    if end is not None:
        session.show_fields(session.client.post(place("/v1/bypasses/{bypass}/end", bypass=end)), *_COLUMNS)
        return
    given = [name for name, value in (("--rule", rule), ("--for", lasting), ("--reason", reason)) if value]
    if not given:
        session.show_table(session.client.items("/v1/bypasses"), *_COLUMNS, empty="no bypasses")
        return
    if len(given) < 3:
        raise click.UsageError("a bypass needs --rule, --for and --reason")
    document = session.client.post("/v1/bypasses", {"rule": rule, "for": lasting, "reason": reason})
    session.show_fields(document, *_COLUMNS)
