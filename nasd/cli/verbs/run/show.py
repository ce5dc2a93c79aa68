"""``nas run show``."""

from __future__ import annotations

from nasd.cli.here import find_run, run_argument
from nasd.cli.session import Session, verb
from nasd.client import place

_SHOWN = ("run", "role", "state", "branch", "owner", "purpose", "base", "head", "created", "ended", "reason", "lease", "proposals")


@verb
@run_argument
def command(session: Session, run: str | None) -> None:
    """Show a run and what it has not committed."""
    document = session.client.get(place("/v1/runs/{run}", run=find_run(session, run)))

    def human() -> None:
        from nasd.cli.tables import print_changes, print_fields, print_table

        print_fields(document, _SHOWN)
        taint = document["taint"]
        if taint["because"]:
            print(f"\ntainted {taint['origin']}/{taint['sensitivity']} by reading:")
            print_table(taint["because"], ("label", "path"), "")
        if document["uncommitted"]:
            print("\nnot committed:")
            print_changes(document["uncommitted"], patch=False)

    session.show(document, human)
