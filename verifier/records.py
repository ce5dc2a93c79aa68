"""One record as a line, and whether its hash is right: the format, and nothing that knows what records mean.

1. A line has eleven columns with tabs between them: sequence, time, phase, refers, kind, principal, run, lease, salt, hash, body.
2. The hash is SHA-256("nas-record-v2\\0" || hash before || the first eight columns, each with its tab || commitment), the commitment
   SHA-256("nas-body-v2\\0" || salt || body). A redacted record has an empty body and the commitment in the place of the salt.
3. A record of the first release has no salt. Its hash is SHA-256("nas-record-v1\\0" || hash before || lengths || fields || body).
4. A body is canonical JSON: keys sorted, nothing spaced, everything beyond ASCII escaped.
5. Pure.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

_DOMAIN = b"nas-record-v2\0"
_BODY_DOMAIN = b"nas-body-v2\0"
_FIRST_DOMAIN = b"nas-record-v1\0"
_sha256 = hashlib.sha256
_decode = json.JSONDecoder().decode
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode
PHASES = frozenset({"intent", "outcome", "fact"})


class BadRecord(Exception):
    """A line that is no record, or not the one its hash says. `check` names which check it failed."""

    def __init__(self, check: str, why: str) -> None:
        super().__init__(why)
        self.check = check
        self.why = why


class Record(NamedTuple):
    """A record whose hash is right. `body` is None when it was redacted."""

    sequence: int
    time: int
    phase: str
    refers: int
    kind: str
    principal: str
    run: str
    lease: str
    hash: bytes
    body: dict[str, Any] | None


def read_record(line: bytes, sequence: int, previous: bytes) -> Record:
    """Return the record that a line is, when it is number `sequence` and follows the hash `previous`. Raises `BadRecord`."""
    try:
        number, time, phase, refers, kind, principal, run, lease, salt, digest, body = line.decode().split("\t")
    except (ValueError, UnicodeDecodeError):
        raise BadRecord("chain", "no line of eleven columns") from None
    if number != str(sequence):
        raise BadRecord("chain", f"record {sequence} is missing" if number.isdigit() and int(number) > sequence else "out of order")
    text = body[:-1]
    try:
        found = _hash(line, previous, bytes.fromhex(salt), text)
        if found.hex() != digest or body[-1:] != "\n":
            raise BadRecord("chain", "its hash is not the one of what it says")
        said = _decode(text) if text else None
        if phase not in PHASES or str(int(time)) != time or (refers and str(int(refers)) != refers):
            raise BadRecord("canonical", "a column is not written in its one way")
    except ValueError as error:
        raise BadRecord("canonical", f"cannot be read: {error}") from error
    if said is not None and (_encode(said) != text or not isinstance(said, dict)):
        raise BadRecord("canonical", "its body is not in canonical form")
    return Record(sequence, int(time), phase, int(refers) if refers else 0, kind, principal, run, lease, found, said)


def _hash(line: bytes, previous: bytes, salt: bytes, text: str) -> bytes:
    if not salt:
        return _first_hash(line, previous)
    head = line[: len(line) - len(line.split(b"\t", 8)[8])]
    if len(salt) == 16 and text:
        commitment = _sha256(_BODY_DOMAIN + salt + text.encode()).digest()
    elif len(salt) == 32 and not text:
        commitment = salt
    else:
        raise ValueError("body and salt do not belong together")
    return _sha256(_DOMAIN + previous + head + commitment).digest()


def _first_hash(line: bytes, previous: bytes) -> bytes:
    number, time, phase, refers, kind, principal, run, lease, _, _, body = line.decode().split("\t")
    lengths = f"{number},{time},{phase},{refers or None},{len(kind)},{len(principal)},{len(run)},{len(lease)}\n"
    return _sha256(_FIRST_DOMAIN + previous + f"{lengths}{kind}{principal}{run}{lease}{body[:-1]}".encode()).digest()
