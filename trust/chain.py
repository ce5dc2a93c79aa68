"""The hash chain of records: how one is sealed and how many are verified.

1. A record's hash is SHA-256 over a domain, the hash before it, its head and the commitment to its body. The head is its first eight
   fields, each followed by a tab; no field holds one, so that none can lend a letter to its neighbour.
2. The commitment is SHA-256 over a domain, a random salt and the body. A record is redacted by putting the commitment in the place of salt
   and body: its hash, and so the chain, stays as it is, and what a short body said cannot be guessed.
3. Records of the first release have no salt: their hash covers the body itself, and they cannot be redacted.
4. Sequence numbers start at 1 and have no gaps. The first record follows `GENESIS`.
5. `walk` names the first record that does not verify and stops there.
6. Pure; `walk` does two hashes a record and nothing else that costs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from trust.errors import ScopeInvalid

GENESIS = bytes(32)
"""What stands before the first record."""
SALT_BYTES = 16
COMMITMENT_BYTES = 32
_DOMAIN = b"nas-record-v2\0"
_BODY_DOMAIN = b"nas-body-v2\0"
_FIRST_DOMAIN = b"nas-record-v1\0"

Row = tuple[int, int, str, int | None, str, str, str, str, str, bytes, bytes, bytes]
"""A stored record: sequence, time, phase, refers, kind, principal, run, lease, body as JSON text, previous hash, hash, salt.

A redacted one has no body, and the commitment in the place of the salt.
"""


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


def commit_body(salt: bytes, body: str) -> bytes:
    """Return the commitment to a body."""
    return hashlib.sha256(_BODY_DOMAIN + salt + body.encode()).digest()


def seal(draft: Draft, sequence: int, previous: bytes, salt: bytes) -> Row:
    """Return the record in its place; `salt` is `SALT_BYTES` of randomness."""
    fields = (sequence, draft.time, draft.phase, draft.refers, draft.kind, draft.principal, draft.run, draft.lease)
    return (*fields, draft.body, previous, _head_hash(previous, *fields, commit_body(salt, draft.body)), salt)


def row_hash(row: Row) -> bytes:
    """Return the hash that a record should have; nothing for one whose body and salt do not belong together."""
    body, previous, salt = row[8], row[9], row[11]
    if len(salt) == SALT_BYTES:
        return _head_hash(previous, *row[:8], commit_body(salt, body))
    if len(salt) == COMMITMENT_BYTES and not body:
        return _head_hash(previous, *row[:8], salt)
    return _first_hash(previous, *row[:9]) if not salt else b""


def walk(rows: Iterable[Row], start: Walked) -> Walked:
    """Follow rows in order from a good place and return the last good one, with why the next is not."""
    sequence, last = start.sequence, start.hash
    for row in rows:
        found, previous, stored = row[0], row[9], row[10]
        if found != sequence + 1:
            return Walked(sequence, last, f"record {sequence + 1} is missing")
        if previous != last:
            return Walked(sequence, last, f"record {found} does not follow the one before it")
        if row_hash(row) != stored:
            return Walked(sequence, last, f"record {found} was changed")
        sequence, last = found, stored
    return Walked(sequence, last)


def _head_hash(
    previous: bytes,
    sequence: int,
    time: int,
    phase: str,
    refers: int | None,
    kind: str,
    principal: str,
    run: str,
    lease: str,
    commitment: bytes,
) -> bytes:
    intent = "" if refers is None else refers
    head = f"{sequence}\t{time}\t{phase}\t{intent}\t{kind}\t{principal}\t{run}\t{lease}\t"
    return hashlib.sha256(_DOMAIN + previous + head.encode() + commitment).digest()


def _first_hash(
    previous: bytes, sequence: int, time: int, phase: str, refers: int | None, kind: str, principal: str, run: str, lease: str, body: str
) -> bytes:
    lengths = f"{sequence},{time},{phase},{refers},{len(kind)},{len(principal)},{len(run)},{len(lease)}\n"
    return hashlib.sha256(_FIRST_DOMAIN + previous + f"{lengths}{kind}{principal}{run}{lease}{body}".encode()).digest()
