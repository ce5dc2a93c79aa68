"""Bodies as clients send them: sources that give few bytes at a time, and signed ``aws-chunked`` encoding."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from interfaces.port import Content
from interfaces.s3.canonical import Scope, chunk_to_sign, trailer_to_sign
from interfaces.s3.chunks import Chain
from tests.interfaces.s3.signing import SECRET, SecretSigner

SCOPE = Scope("20130524", "us-east-1", "s3")
TIMESTAMP = "20130524T000000Z"


class Trickle:
    """A source that gives at most `step` bytes at a time, and remembers the most it was asked for."""

    def __init__(self, data: bytes, step: int = 1 << 30) -> None:
        self._data, self._step = data, step
        self.most = 0

    def read(self, size: int, /) -> bytes:
        self.most = max(self.most, size)
        piece, self._data = self._data[: min(size, self._step)], self._data[min(size, self._step) :]
        return piece


def chain(seed: str = "0" * 64, secret: str = SECRET) -> Chain:
    return Chain(SecretSigner(secret, SCOPE.day, SCOPE.region, SCOPE.service), TIMESTAMP, SCOPE, seed)


def encode_signed(chunks: Sequence[bytes], using: Chain, trailers: Sequence[tuple[bytes, bytes]] | None = None) -> bytes:
    """Return chunks signed one after the other, the empty last one included, and signed trailers if there are any."""
    previous, pieces = using.seed, []
    for chunk in [*chunks, b""]:
        previous = using.signer.sign(chunk_to_sign(TIMESTAMP, SCOPE, previous, hashlib.sha256(chunk).hexdigest()))
        pieces.append(b"%x;chunk-signature=%b\r\n%b" % (len(chunk), previous.encode(), chunk + b"\r\n" if chunk else b""))
    if trailers is not None:
        signature = using.signer.sign(trailer_to_sign(TIMESTAMP, SCOPE, previous, trailers))
        pieces += [b"%b:%b\r\n" % trailer for trailer in trailers]
        pieces.append(b"x-amz-trailer-signature:%b\r\n" % signature.encode())
    return b"".join([*pieces, b"\r\n"])


def read_all(content: Content, size: int = 1 << 20) -> bytes:
    pieces = []
    while piece := content.read(size):
        pieces.append(piece)
    return b"".join(pieces)
