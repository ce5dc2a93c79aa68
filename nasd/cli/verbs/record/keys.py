"""``nas record keys``."""

from __future__ import annotations

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """Print the public keys of the log and of its witnesses.

    Who verifies an export, or cosigns checkpoints, needs the first; keep it where this machine cannot change it.
    """
    document = session.client.get("/v1/records/keys")

    def human() -> None:
        for key in (document["log"], *document["witnesses"]):
            print(key)

    session.show(document, human)
