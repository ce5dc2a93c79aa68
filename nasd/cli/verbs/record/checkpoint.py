"""``nas record checkpoint``."""

from __future__ import annotations

from nasd.cli.failures import Exit
from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> int:
    """Sign the head of the record now and keep it outside.

    Has the witnesses cosign it and prints it. Ends with 1 when a place or a witness did not take it.
    """
    document = session.client.post("/v1/records/checkpoint")

    def human() -> None:
        from nasd.cli.tables import plain

        print(document["note"], end="")
        for failure in document["failures"]:
            session.say(plain(failure))

    session.show(document, human)
    return Exit.FAILED if document["failures"] else Exit.OK
