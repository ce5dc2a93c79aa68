"""The hash chain of records: how one is sealed and how many are verified.

1. A record's hash is SHA-256 over a domain, the hash before it, and every field; lengths go first, so that no field can lend a
   letter to its neighbour.
2. Sequence numbers start at 1 and have no gaps. The first record follows `GENESIS`.
3. `walk` names the first record that does not verify and stops there.
4. Pure; `walk` does one hash a record and nothing else that costs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from trust.errors import ScopeInvalid

GENESIS = bytes(32)
"""What stands before the first record."""
_DOMAIN = b"nas-record-v1\0"

Row = tuple[int, int, str, int | None, str, str, str, str, str, bytes, bytes]
"""A stored record: sequence, time, phase, refers, kind, principal, run, lease, body as JSON text, previous hash, hash."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A record before it has a place in the chain. `body` is canonical JSON text."""

    time: int
    phase: str
    refers: int | None
    kind: str
    principal: str
    run: str
    lease: str
    body: str


@dataclass(frozen=True, slots=True)
class Walked:
    """Where a walk stands: the last good sequence number and its hash, and why it stopped (empty: it did not)."""

    sequence: int
    hash: bytes
    why: str = ""


def check_draft(draft: Draft) -> None:
    """Refuse text that cannot be stored exactly. Raises `ScopeInvalid`."""
    for text in (draft.kind, draft.principal, draft.run, draft.lease):
        if not text.isprintable():
            raise ScopeInvalid(repr(text), "not printable text")


def record_hash(
    previous: bytes, sequence: int, time: int, phase: str, refers: int | None, kind: str, principal: str, run: str, lease: str, body: str
) -> bytes:
    """Return the hash of a record that follows `previous`."""
    lengths = f"{sequence},{time},{phase},{refers},{len(kind)},{len(principal)},{len(run)},{len(lease)}\n"
    return hashlib.sha256(_DOMAIN + previous + f"{lengths}{kind}{principal}{run}{lease}{body}".encode()).digest()


def seal(draft: Draft, sequence: int, previous: bytes) -> Row:
    """Return the record in its place."""
    fields = (draft.time, draft.phase, draft.refers, draft.kind, draft.principal, draft.run, draft.lease, draft.body)
    return (sequence, *fields, previous, record_hash(previous, sequence, *fields))


def walk(rows: Iterable[Row], start: Walked) -> Walked:
    """Follow rows in order from a good place and return the last good one, with why the next is not."""
    sequence, last = start.sequence, start.hash
    for row in rows:
        found, previous, stored = row[0], row[9], row[10]
        if found != sequence + 1:
            return Walked(sequence, last, f"record {sequence + 1} is missing")
        if previous != last:
            return Walked(sequence, last, f"record {found} does not follow the one before it")
        if record_hash(previous, *row[:9]) != stored:
            return Walked(sequence, last, f"record {found} was changed")
        sequence, last = found, stored
    return Walked(sequence, last)
