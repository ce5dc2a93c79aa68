"""What a client does for itself where its protocol has no word for it."""

from __future__ import annotations

from tests.contract.doors.clients.door import Aspect, Difference
from tests.contract.doors.leases import Standing
from tests.contract.doors.model import FIRST, Client, Operation, Refused
from trust.model import BudgetKind

MORE_BY_APPENDING = {BudgetKind.READS: 1, BudgetKind.BYTES_READ: len(FIRST), BudgetKind.BYTES_WRITTEN: len(FIRST)}
"""What it costs to read a file and write it whole instead of adding to its end."""


def append_by_reading() -> tuple[Difference, ...]:
    """Return how a door differs that reads a file and writes it whole to add to its end."""
    append = {Operation.APPEND}
    return (
        Difference(Aspect.READS, {Standing.ALLOWED, Standing.READ_ONLY}, append, "the file is read first"),
        Difference(Aspect.RECORD, {Standing.REFUSED}, append, "what is refused is the read that comes first"),
    )


def search_by_reading(client: Client, path: str, text: str) -> tuple[str, ...]:
    """Return the files that hold a text, by listing and reading them.

    As `grep -r` it goes on past a file that it may not read, and fails in the end.
    """
    found: list[str] = []
    refused: Refused | None = None
    for name in client.list(path):
        try:
            if text.encode() in client.read(f"{path}/{name}"):
                found.append(name)
        except Refused as refusal:
            refused = refusal
    if refused is not None:
        raise refused
    return tuple(found)
