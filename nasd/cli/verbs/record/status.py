"""``nas record status``."""

from __future__ import annotations

from nasd.cli.failures import Exit
from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> int:
    """Tell how far the record is signed and witnessed.

    Ends with 1 when a place or a witness did not take the last checkpoint.
    """
    document = session.client.get("/v1/records/status")

    def human() -> None:
        from nasd.cli.tables import plain

        signed = document["checkpoint"]
        print(f"records     {document['records']} of {plain(document['origin'])}")
        print(f"signed      {signed['size']}, {signed['behind']} behind ({signed['time'] or 'never'})")
        for witness in document["witnesses"]:
            print(f"witness     {plain(witness['name'])}: {witness['size']}, {witness['behind']} behind")
        for anchor in document["anchors"]:
            print(f"anchor      {plain(anchor)}")
        for segment in document["segments"]:
            print(f"segment     {segment['first']} to {segment['last']}{', given up' if segment['removed'] else ''}")
        for failure in document["failures"]:
            print(f"FAIL        {plain(failure)}")

    session.show(document, human)
    return Exit.FAILED if document["failures"] else Exit.OK
