"""``nas doctor``."""

from __future__ import annotations

from nasd.cli.failures import Exit
from nasd.cli.patience import patience
from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> int:
    """Examine this machine and the data directory.

    Says what to do about what is wrong, and ends with 1 when something is. Needs no daemon.
    """
    from nasd.doctor import examine

    with patience("Examining"):
        document = examine(session.settings)

    def human() -> None:
        from nasd.cli.tables import plain

        for item in document["items"]:
            print(f"{'ok  ' if item['ok'] else 'FAIL'}  {item['check']}: {plain(item['detail'])}")
            if not item["ok"] and item.get("hint"):
                print(f"      hint: {plain(item['hint'])}")

    session.show(document, human)
    return Exit.OK if document["ok"] else Exit.FAILED
