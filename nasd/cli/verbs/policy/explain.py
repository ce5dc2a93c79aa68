"""``nas policy explain``."""

from __future__ import annotations

from typing import Any, TextIO

import click

from nasd.cli.options import read_budgets, read_list, read_pairs, read_path
from nasd.cli.session import Session, verb
from nasd.client import NoDaemon

_ABOUT = ("principal", "lease", "run")


@verb
@click.argument("action", required=False)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--principal", help="Ask for this principal, instead of whoever runs the command.")
@click.option("--lease", help="Ask for this lease.")
@click.option("--run", help="Ask for this run's lease.")
@click.option("--policy", "file", type=click.File(encoding="utf-8"), help="Ask another policy than the one in force.")
@click.option("--facts", type=click.File(encoding="utf-8"), help="Ask about the facts of a record or of a difference, as JSON.")
@click.option("--kind", type=click.Choice(["human", "agent", "service", "node"]), help="What acts.")
@click.option("--role", "roles", multiple=True, help="A role it has beside those the policy gives; repeatable.")
@click.option("--on-behalf-of", metavar="NAME", help="For whom it acts, or who asks for a run.")
@click.option("--taint", metavar="ORIGIN/SENSITIVITY", help="What the run has read.")
@click.option("--label", metavar="ORIGIN/SENSITIVITY", help="The label of what it is about, instead of what the policy says.")
@click.option("--outward", is_flag=True, help="The run can act outside.")
@click.option("--destination", metavar="ACCOUNT", help="For egress: the account it goes to.")
@click.option("--declared", is_flag=True, help="The lease names the destination.")
@click.option("--protected", is_flag=True, help="On a protected branch.")
@click.option("--at", metavar="SECONDS", type=int, help="When, in seconds since the epoch.")
@click.option("--change", "numbers", multiple=True, metavar="NAME=AMOUNT", help="Merge: files, bytes, deletes, twins, checks, stale_reads.")
@click.option("--request-paths", multiple=True, metavar="PATTERN", help="Start: what the lease is to reach; repeatable, or with commas.")
@click.option("--request-actions", multiple=True, metavar="ACTION", help="Start: what it is to carry; repeatable, or with commas.")
@click.option("--request-ttl", metavar="DURATION", help="Start: how long it is to count.")
@click.option("--request-budget", "budgets", multiple=True, metavar="NAME=AMOUNT", help="Start: what it may spend; repeatable.")
def command(session: Session, action: str | None, paths: tuple[str, ...], file: TextIO | None, facts: TextIO | None, **given: Any) -> None:
    """Explain what the policy says about an action.

    Names every rule about it, and the first condition of each that failed. A merge is of all PATHs. Nothing happens. Reads the
    data directory or a policy file; what only a daemon knows, such as one's own lease, it asks the daemon for.
    """
    if (action is None) == (facts is None):
        raise click.UsageError("name an action, or give --facts")
    document = _explain_facts(session, file, facts) if facts is not None else _explain(session, str(action), paths, file, given)

    def human() -> None:
        from nasd.cli.tables import print_fields, print_table

        print_fields(document, ("effect", "reason", "rule", "policy", "required_role", "hint"))
        print()
        about = [rule for rule in document["considered"] if rule["why"] != "actions"]
        print_table(about, ("rule", "kind", "position", "matched", "why"), "no rule speaks of this action")

    session.show(document, human)


def _explain_facts(session: Session, file: TextIO | None, facts: TextIO) -> dict[str, Any]:
    from nasd.offline import Source, adopted, explain_facts, opened

    if file is not None:
        return explain_facts(Source(file.read(), file.name), facts.read())
    with opened(session.settings) as trust:
        return explain_facts(adopted(trust), facts.read())


def _explain(session: Session, action: str, paths: tuple[str, ...], file: TextIO | None, given: dict[str, Any]) -> dict[str, Any]:
    """Ask the daemon about oneself and what it has given; everything else is asked of files."""
    shown = [read_path(path) for path in paths]
    told = {name: value for name, value in given.items() if value not in (None, False, ())}
    text = file.read() if file else None
    if not told.keys() - {*_ABOUT, "protected"} and len(shown) <= 1 and (text is None or session.acts_with_lease):
        body = {"action": action, "path": shown[0] if shown else None, "text": text, "protected": told.get("protected")}
        try:
            return session.client.post("/v1/policy/explain", body | {name: given[name] for name in _ABOUT})
        except NoDaemon:
            session.say("no daemon is running: the data directory is read")
    from nasd.offline import Source, explain_here

    asked = told | {"action": action, "paths": shown}
    asked["change"] = read_pairs(told.get("numbers", ()), "--change")
    asked["request"] = {
        "paths": read_list(told.get("request_paths", ())),
        "actions": read_list(told.get("request_actions", ())),
        "ttl": told.get("request_ttl"),
        "budgets": read_budgets(told.get("budgets", ())),
    }
    return explain_here(session.settings, Source(text, str(file.name)) if file and text is not None else None, asked)
