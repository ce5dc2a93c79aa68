"""Records as lines of text: what sealed segments and exports are made of.

1. One record a line of eleven columns with tabs between them: sequence, time, phase, refers, kind, principal, run, lease, salt, hash, body.
   Nothing is escaped: no field holds a tab or a line's end, and a body is canonical JSON. Salt and hash are hex.
2. The hash before is that of the line before. A redacted record has its commitment as salt and an empty body.
3. One record has one line: what is read and written again gives the same bytes.
4. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trust.chain import Row
from trust.errors import ChainBroken

_COLUMNS = 11


def render_lines(rows: Iterable[Row]) -> bytes:
    """Return the lines of records."""
    return "".join(
        [
            f"{sequence}\t{time}\t{phase}\t{'' if refers is None else refers}\t{kind}\t{principal}\t{run}\t{lease}"
            f"\t{salt.hex()}\t{digest.hex()}\t{body}\n"
            for sequence, time, phase, refers, kind, principal, run, lease, body, _, digest, salt in rows
        ]
    ).encode()


def parse_lines(lines: Iterable[bytes], previous: bytes, place: int) -> Iterator[Row]:
    """Yield the records of lines that follow the record number `place` with the hash `previous`. Raises `ChainBroken`, naming the line."""
    for line in lines:
        place += 1
        columns = line.split(b"\t")
        if len(columns) != _COLUMNS or not line.endswith(b"\n"):
            raise ChainBroken("record", f"record {place} is no whole line")
        try:
            row = _read(columns, previous)
        except ValueError as error:
            raise ChainBroken("record", f"record {place} cannot be read") from error
        previous = row[10]
        yield row


def _read(columns: list[bytes], previous: bytes) -> Row:
    sequence, time, phase, refers, kind, principal, run, lease, salt, digest, body = [column.decode() for column in columns]
    intent = int(refers) if refers else None
    head = (int(sequence), int(time), phase, intent, kind, principal, run, lease)
    return (*head, body[:-1], previous, bytes.fromhex(digest), bytes.fromhex(salt))
