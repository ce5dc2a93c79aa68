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
from collections.abc import Callable, Iterable, Iterator
from json import encoder
from typing import Any, NamedTuple

_DOMAIN = b"nas-record-v2\0"
_BODY_DOMAIN = b"nas-body-v2\0"
_FIRST_DOMAIN = b"nas-record-v1\0"
_SALT, _COMMITMENT = 32, 64  # in hexadecimal digits
_sha256 = hashlib.sha256
_PHASES = frozenset({"intent", "outcome", "fact"})


class BadRecord(Exception):
    """A line that is no record, or not the one its hash says. `check` names which check it failed, `sequence` the record."""

    def __init__(self, check: str, why: str, sequence: int = 0) -> None:
        super().__init__(why)
        self.check = check
        self.why = why
        self.sequence = sequence


class Record(NamedTuple):
    """A record whose hash is right. `body` is empty when it was redacted."""

    sequence: int
    time: int
    phase: str
    refers: int
    kind: str
    principal: str
    run: str
    lease: str
    hash: bytes
    body: dict[str, Any]


def read_record(line: bytes, sequence: int, previous: bytes) -> Record:
    """Return the record that a line is, when it is number `sequence` and follows the hash `previous`. Raises `BadRecord`."""
    return next(read_records([line], sequence, previous))


def read_records(lines: Iterable[bytes], sequence: int, previous: bytes) -> Iterator[Record]:
    """Yield the records that lines are, the first of them number `sequence` after the hash `previous`. Raises `BadRecord`.

    It runs a million times: nothing is computed twice, and nothing that has not to be.
    """
    scan, read_time = json.JSONDecoder().raw_decode, ("", 0)
    for line in lines:
        try:
            number, time, phase, refers, kind, principal, run, lease, salt, digest, body = line.decode().split("\t")
            if number != str(sequence):
                raise BadRecord("chain", f"record {sequence} is missing" if number.isdigit() else "no number of a record", sequence)
            if not body.isascii():
                raise BadRecord("canonical", "its body is not in canonical form", sequence)
            found = _hash(line, previous, salt, len(digest), len(body))
            if found.hex() != digest or body[-1] != "\n":
                raise BadRecord("chain", "its hash is not the one of what it says", sequence)
            text: str = body[:-1]
            said: Any = {}
            if text:
                said, _ = scan(text)
                if type(said) is not dict or _encode(said) != text:
                    raise BadRecord("canonical", "its body is not in canonical form", sequence)
            if time != read_time[0]:
                read_time = (time, int(time))
            if phase not in _PHASES or str(read_time[1]) != time or (refers and str(int(refers)) != refers):
                raise BadRecord("canonical", "a column is not written in its one way", sequence)
            yield Record(sequence, read_time[1], phase, int(refers) if refers else 0, kind, principal, run, lease, found, said)
        except (ValueError, IndexError) as error:
            raise BadRecord("chain", f"not a line of a record: {error}", sequence) from error
        previous = found
        sequence += 1


def _hash(line: bytes, previous: bytes, salt: str, digest: int, body: int) -> bytes:
    """Return the hash that a line should have; `digest` and `body` are how long these columns are. Raises `ValueError`."""
    head = line[: -(len(salt) + digest + body + 2)]
    if len(salt) == _SALT and body > 1:
        commitment = _sha256(_BODY_DOMAIN + bytes.fromhex(salt) + line[-body:-1]).digest()
        return _sha256(_DOMAIN + previous + head + commitment).digest()
    if len(salt) == _COMMITMENT and body == 1:
        return _sha256(_DOMAIN + previous + head + bytes.fromhex(salt)).digest()
    if not salt:
        return _first_hash(line, previous)
    raise ValueError("body and salt do not belong together")


def _first_hash(line: bytes, previous: bytes) -> bytes:
    number, time, phase, refers, kind, principal, run, lease, _, _, body = line.decode().split("\t")
    lengths = f"{number},{time},{phase},{refers or None},{len(kind)},{len(principal)},{len(run)},{len(lease)}\n"
    return hashlib.sha256(_FIRST_DOMAIN + previous + f"{lengths}{kind}{principal}{run}{lease}{body[:-1]}".encode()).digest()


def _make_encoder() -> Callable[[Any], str]:
    """Return what writes JSON in its canonical form: the encoder of the standard library, made once instead of for each body."""
    plain = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    make, escape = getattr(encoder, "c_make_encoder", None), encoder.encode_basestring_ascii
    if make is None:
        return plain.encode
    write = make(None, plain.default, escape, None, ":", ",", True, False, False)
    return lambda value: "".join(write(value, 0))


_encode = _make_encoder()
