"""Bodies in ``aws-chunked`` encoding: chunks, their signatures, and trailers.

1. A body is ``size[;chunk-signature=hex]`` CRLF, data, CRLF, again and again; a chunk of size 0 ends it, trailers may follow.
2. Memory is constant: one block of the source and one line, whatever sizes the client claims.
3. A signed chunk is handed on before its signature can be known, so nothing may believe in a body before its end was read: `read`
   raises there, and whoever publishes what it read publishes nothing.
4. Each signature covers the one before it, so chunks cannot be left out, repeated or moved.
5. One thread reads one body.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from interfaces.port import Content, Signer
from interfaces.s3.canonical import Scope, chunk_to_sign, trailer_to_sign
from interfaces.s3.faults import S3Fault

MAX_LINE = 4096
MAX_TRAILERS = 16

_BLOCK = 256 << 10
_MAX_CHUNK = 1 << 40
_CHUNK_SIGNATURE = b"chunk-signature="
_TRAILER_SIGNATURE = b"x-amz-trailer-signature"


@dataclass(frozen=True, slots=True)
class Chain:
    """What signs the chunks of one request: its key, its time and scope, and the signature of the request, which comes first."""

    signer: Signer
    timestamp: str
    scope: Scope
    seed: str


class ChunkedContent:
    """The content inside an ``aws-chunked`` body. With a chain, every chunk (and the trailers, if there are any) must be signed."""

    def __init__(self, source: Content, chain: Chain | None, *, trailed: bool) -> None:
        """Decode `source`; `trailed` tells whether trailers may follow the last chunk."""
        self._lines = _Buffered(source)
        self._chain = chain
        self._previous = chain.seed if chain else ""
        self._trailed = trailed
        self._left = 0
        self._claimed = ""
        self._hash = hashlib.sha256()
        self._begun = False
        self._ended = False
        self.trailers: dict[str, str] = {}

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`, nothing at the end; `trailers` is complete then. Raises `S3Fault`."""
        pieces: list[bytes] = []
        missing = size
        while missing and self._advance():
            piece = self._lines.take(min(missing, self._left))
            if not piece:
                raise _cut()
            if self._chain:
                self._hash.update(piece)
            self._left -= len(piece)
            missing -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _advance(self) -> bool:
        """Be inside a chunk with bytes left, and tell whether there is one."""
        if self._left or self._ended:
            return not self._ended
        if self._begun:
            self._finish_chunk()
        self._begun = True
        self._left = self._start_chunk()
        self._ended = not self._left
        if self._ended:
            self._verify_chunk()
            self._read_trailers()
        return not self._ended

    def _start_chunk(self) -> int:
        """Read the line before a chunk and return the size of the chunk."""
        size, _, extension = self._lines.line().partition(b";")
        if self._chain:
            if not extension.startswith(_CHUNK_SIGNATURE):
                raise S3Fault("SignatureDoesNotMatch", "A chunk of the request body carries no chunk-signature")
            self._claimed = extension.removeprefix(_CHUNK_SIGNATURE).decode("latin-1")
        return _parse_size(size)

    def _finish_chunk(self) -> None:
        if self._lines.line():
            raise _malformed("a chunk is longer than it says")
        self._verify_chunk()

    def _verify_chunk(self) -> None:
        if self._chain is None:
            return
        text = chunk_to_sign(self._chain.timestamp, self._chain.scope, self._previous, self._hash.hexdigest())
        self._verify(self._chain, text)
        self._hash = hashlib.sha256()

    def _verify(self, chain: Chain, text: bytes) -> None:
        signature = chain.signer.sign(text)
        if not hmac.compare_digest(signature.encode(), self._claimed.encode("latin-1")):
            raise S3Fault("SignatureDoesNotMatch")
        self._previous = signature

    def _read_trailers(self) -> None:
        """Read to the end of the body; the empty line that ends the trailers may be missing, as some clients leave it out."""
        found: list[tuple[bytes, bytes]] = []
        while not self._lines.ended():
            line = self._lines.line()
            name, colon, value = line.partition(b":")
            if line and not (colon and self._trailed and len(found) < MAX_TRAILERS):
                raise _malformed("what follows the last chunk is no trailer")
            if line:
                found.append((name.strip().lower(), value.strip()))
        trailers = [field for field in found if field[0] != _TRAILER_SIGNATURE]
        if self._chain and self._trailed:
            self._claimed = dict(found).get(_TRAILER_SIGNATURE, b"").decode("latin-1")
            self._verify(self._chain, trailer_to_sign(self._chain.timestamp, self._chain.scope, self._previous, trailers))
        self.trailers = {name.decode("latin-1"): value.decode("latin-1") for name, value in trailers}


class _Buffered:
    """Lines and blocks of a source, through one block of memory."""

    def __init__(self, source: Content) -> None:
        self._source = source
        self._block = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return at least one and up to `size` bytes, nothing at the end of the source."""
        if self.ended():
            return b""
        piece = self._block[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def line(self) -> bytes:
        """Return the next line without its end. Raises ``IncompleteBody`` at the end of the source."""
        if self.ended():
            raise _cut()
        line = b""
        while not self.ended():
            at = self._block.find(b"\n", self._at)
            end = len(self._block) if at < 0 else at + 1
            line += self._block[self._at : end]
            self._at = end
            if len(line) > MAX_LINE:
                raise _malformed("a line is too long")
            if at >= 0:
                break
        return line.rstrip(b"\r\n")

    def ended(self) -> bool:
        """Tell whether the source is at its end."""
        if self._at == len(self._block):
            self._block, self._at = self._source.read(_BLOCK), 0
        return not self._block


def _parse_size(text: bytes) -> int:
    digits = text.strip()
    if not 0 < len(digits) <= 16 or digits.strip(b"0123456789abcdefABCDEF"):
        raise _malformed("a chunk does not say its size")
    size = int(digits, 16)
    if size > _MAX_CHUNK:
        raise _malformed("a chunk is larger than any object")
    return size


def _cut() -> S3Fault:
    return S3Fault("IncompleteBody", "The request body terminated unexpectedly")


def _malformed(what: str) -> S3Fault:
    return S3Fault("InvalidRequest", f"The aws-chunked request body is malformed: {what}")
