"""What AWS Signature Version 4 signs: the canonical request, the string to sign, the strings of chunks and trailers. Pure.

1. Everything is the bytes of the wire: a header is signed as it was sent, and so is a path, which S3 never normalises.
2. A client may have signed another spelling of the same path and query than it sent (``%7E`` for ``~``). Both spellings say the
   same, so both are tried: first the one that was sent, which is what nearly all clients sign.
3. Spaces inside a header count as one, the values of a name that repeats are joined by a comma without a space.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

ALGORITHM = "AWS4-HMAC-SHA256"
TERMINATOR = "aws4_request"
EMPTY_SHA256 = hashlib.sha256().hexdigest()

Fields = Iterable[tuple[bytes, bytes]]
"""Header fields as the server hands them over: names in lower case, in the order sent."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a signing key is good for: a day (YYYYMMDD), a region, a service."""

    day: str
    region: str
    service: str

    @property
    def text(self) -> str:
        """Return the scope as it is signed."""
        return f"{self.day}/{self.region}/{self.service}/{TERMINATOR}"


def canonical_requests(
    method: str, raw_path: bytes, raw_query: bytes, fields: Fields, signed: Sequence[str], payload: str, *, without: bytes = b""
) -> Iterator[bytes]:
    """Yield the canonical requests a client may have signed, the likeliest first.

    `signed` names the signed headers in the order the client does, `payload` is what stands for the body, `without` the name of
    the query parameter that carries the signature itself.
    """
    names = ";".join(signed).encode()
    tail = b"\n".join((canonical_headers(fields, signed), names, payload.encode()))
    head = method.encode()
    sent = raw_path, sent_query(raw_query, without) if raw_query else b""
    yield b"\n".join((head, *sent, tail))
    # Spelling a request in another way costs as much as all the rest, and hardly any client asks for it.
    encoded = quote_from_bytes(unquote_to_bytes(raw_path), safe="/~").encode(), encoded_query(raw_query, without)
    for other in dict.fromkeys((path, query) for path in (sent[0], encoded[0]) for query in (sent[1], encoded[1])):
        if other != sent:
            yield b"\n".join((head, *other, tail))


def canonical_headers(fields: Fields, signed: Sequence[str]) -> bytes:
    """Return the lines of the signed headers, each ended; one that was not sent counts as empty."""
    wanted: dict[bytes, list[bytes]] = {name.encode(): [] for name in signed}
    for name, value in fields:
        if name in wanted:
            wanted[name].append(b" ".join(value.split()))
    return b"".join(b"%b:%b\n" % (name, b",".join(values)) for name, values in wanted.items())


def sent_query(raw: bytes, without: bytes) -> bytes:
    """Return a query ordered, each part spelled as it was sent."""
    pairs = [(name, value) for name, _, value in (part.partition(b"=") for part in raw.split(b"&") if part) if name != without]
    return b"&".join(b"%b=%b" % pair for pair in sorted(pairs))


def encoded_query(raw: bytes, without: bytes) -> bytes:
    """Return a query ordered, each part spelled as the signing rules spell it."""
    parts = (part.replace(b"+", b" ").partition(b"=") for part in raw.split(b"&") if part)
    decoded = ((unquote_to_bytes(name), unquote_to_bytes(value)) for name, _, value in parts)
    pairs = [(quote_from_bytes(name, safe="~"), quote_from_bytes(value, safe="~")) for name, value in decoded if name != without]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs)).encode()


def string_to_sign(timestamp: str, scope: Scope, request: bytes) -> bytes:
    """Return what the signature of a canonical request is made of (`timestamp` as YYYYMMDDTHHMMSSZ)."""
    return f"{ALGORITHM}\n{timestamp}\n{scope.text}\n{hashlib.sha256(request).hexdigest()}".encode()


def chunk_to_sign(timestamp: str, scope: Scope, previous: str, digest: str) -> bytes:
    """Return what the signature of a chunk is made of: the signature before it, and the SHA-256 of its data."""
    return f"{ALGORITHM}-PAYLOAD\n{timestamp}\n{scope.text}\n{previous}\n{EMPTY_SHA256}\n{digest}".encode()


def trailer_to_sign(timestamp: str, scope: Scope, previous: str, trailers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return what the signature of the trailers is made of: the signature of the last chunk, and the trailers in their order."""
    lines = b"".join(b"%b:%b\n" % (name, value) for name, value in trailers)
    return f"{ALGORITHM}-TRAILER\n{timestamp}\n{scope.text}\n{previous}\n{hashlib.sha256(lines).hexdigest()}".encode()
