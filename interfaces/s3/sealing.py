"""Encryption under a key that the client sends with each request and nobody keeps (SSE-C). Pure.

1. The key is used for one request and then forgotten: what is kept is nonces, and a proof by which a wrong key is told from the right one.
2. The bytes are AES-256 in counter mode, as many as the plain ones: sizes, ranges, listings and parts stay what they are, and the tree,
   its history and every other door hold nothing but ciphertext.
3. Each upload and each part draws a nonce of its own: no two contents ever meet the same key stream.
4. The key stream hides, it does not vouch: that the bytes are the ones stored is what the content identity in the sidecar says.
5. The entity tag of a sealed object is not its MD5, by which anybody could recognise a known content; it says that only under the key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from interfaces.port import Content
from interfaces.s3.faults import S3Fault

NONCE_BYTES = 16
KEY_HEADERS = "x-amz-server-side-encryption-customer-"
SOURCE_KEY_HEADERS = "x-amz-copy-source-server-side-encryption-customer-"

_BLOCK = 16
_ALGORITHM = "AES256"
_MANAGED = "x-amz-server-side-encryption"
_MANAGED_BY = frozenset({"AES256", "aws:kms", "aws:kms:dsse"})
_KMS_KEY = "x-amz-server-side-encryption-aws-kms-key-id"


@dataclass(frozen=True, slots=True)
class CustomerKey:
    """A key of a client, for the time of one request. `digest` is its MD5 as it travels."""

    secret: bytes = field(repr=False)
    digest: str


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive bytes under one nonce."""

    size: int
    nonce: bytes


@dataclass(frozen=True, slots=True)
class Seal:
    """How an object is sealed: what proves the key, and its spans in order (none as long as its size is not known)."""

    salt: bytes
    proof: bytes
    spans: tuple[Span, ...] = ()


def read_key(headers: Mapping[str, str], prefix: str = KEY_HEADERS) -> CustomerKey | None:
    """Return the key a request carries, None when it carries none. Raises ``InvalidArgument`` for one that is incomplete or wrong."""
    algorithm, text, digest = (headers.get(prefix + name) for name in ("algorithm", "key", "key-md5"))
    if algorithm is None and text is None and digest is None:
        return None
    if algorithm != _ALGORITHM:
        raise _invalid(prefix + "algorithm", "The requested encryption algorithm is not valid, must be AES256.")
    if text is None:
        raise _invalid(prefix + "key", "Requests specifying Server Side Encryption with Customer provided keys must provide a secret key.")
    if digest is None:
        raise _invalid(prefix + "key-md5", "Requests specifying Server Side Encryption with Customer provided keys must provide its MD5.")
    secret = _decoded(text)
    if len(secret) != 32:
        raise _invalid(prefix + "key", "The secret key was invalid for the specified algorithm.")
    if not hmac.compare_digest(_decoded(digest), hashlib.md5(secret, usedforsecurity=False).digest()):
        raise _invalid(prefix + "key-md5", "The calculated MD5 hash of the key did not match the hash that was provided.")
    return CustomerKey(secret, digest)


def check_encryption(headers: Mapping[str, str]) -> None:
    """Raise ``InvalidArgument`` where a request asks for encryption that contradicts itself, whether it is implemented or not."""
    wanted = headers.get(_MANAGED)
    if wanted is not None and any(name.startswith(KEY_HEADERS) for name in headers):
        raise _invalid(_MANAGED, "Server Side Encryption with Customer provided key is incompatible with the encryption method specified.")
    if wanted is not None and wanted not in _MANAGED_BY:
        raise _invalid(_MANAGED, "The encryption method specified is not supported.")
    if wanted != "aws:kms" and _KMS_KEY in headers:
        raise _invalid(_KMS_KEY, "A key id goes with the encryption method aws:kms.")


def make_seal(key: CustomerKey, entropy: Callable[[int], bytes]) -> Seal:
    """Return the seal of an object under `key`, still without its spans."""
    salt = entropy(NONCE_BYTES)
    return Seal(salt, _prove(key, salt))


def draw_span(size: int, entropy: Callable[[int], bytes]) -> Span:
    """Return `size` bytes under a nonce that nothing else has."""
    return Span(size, entropy(NONCE_BYTES))


def turn_content(source: Content, key: CustomerKey | None, spans: Sequence[Span], start: int = 0) -> Content:
    """Return what `source` reads from byte `start` on, sealed or opened; as it is without a key."""
    return TurnedContent(source, KeyStream(key, spans, start)) if key else source


async def turn_pieces(pieces: AsyncGenerator[bytes, None], stream: KeyStream) -> AsyncGenerator[bytes, None]:
    """Yield pieces, sealed or opened; closes them."""
    try:
        async for piece in pieces:
            yield stream.turn(piece)
    finally:
        await pieces.aclose()


def seal_fields(seal: Seal) -> list[object]:
    """Return a seal as a JSON value."""
    return [seal.salt.hex(), seal.proof.hex(), [[span.size, span.nonce.hex()] for span in seal.spans]]


def decode_seal(fields: Sequence[Any]) -> Seal:
    """Return the seal that `seal_fields` told."""
    salt, proof, spans = fields
    return Seal(bytes.fromhex(salt), bytes.fromhex(proof), tuple(Span(size, bytes.fromhex(nonce)) for size, nonce in spans))


def require_key(seal: Seal | None, key: CustomerKey | None) -> None:
    """Return when `key` opens what `seal` closed. Raises ``InvalidRequest`` when one is missing, or is another."""
    if seal is None and key is None:
        return
    if seal is None:
        raise S3Fault("InvalidRequest", "The encryption parameters are not applicable to this object.")
    if key is None:
        raise S3Fault(
            "InvalidRequest",
            "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.",
        )
    if not hmac.compare_digest(seal.proof, _prove(key, seal.salt)):
        raise S3Fault("InvalidRequest", "The provided encryption parameters did not match the ones used originally.")


def tag_content(md5: bytes, key: CustomerKey | None) -> str:
    """Return the entity tag of a content with this MD5: the MD5, or under a key what only the key can make of it."""
    return hmac.digest(key.secret, b"agent-nas sse-c tag\0" + md5, "sha256")[:16].hex() if key else md5.hex()


def render_key(key: CustomerKey | None) -> list[tuple[str, str]]:
    """Return the headers that tell a client which key was used."""
    return [(KEY_HEADERS + "algorithm", _ALGORITHM), (KEY_HEADERS + "key-md5", key.digest)] if key else []


class KeyStream:
    """Turns plain bytes into sealed ones and back, from a position on, in the order they come."""

    def __init__(self, key: CustomerKey, spans: Sequence[Span], start: int = 0) -> None:
        """Begin at byte `start` of what `spans` cover."""
        self._key = key
        self._spans = spans
        self._ends = list(accumulate(span.size for span in spans))
        self._index = -1
        self._at = start
        self._context: CipherContext | None = None

    def turn(self, data: bytes) -> bytes:
        """Return the next bytes, sealed or opened. Raises `ValueError` past the end of the spans."""
        pieces = []
        while data:
            context, room = self._here()
            pieces.append(context.update(data[:room]))
            self._at += len(pieces[-1])
            data = data[room:]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _here(self) -> tuple[CipherContext, int]:
        """Return the cipher at the current position, and how many bytes it is good for."""
        index = bisect_right(self._ends, self._at)
        if index == len(self._ends):
            raise ValueError("there are more bytes than the spans cover")
        if self._context is None or index != self._index:
            first = self._ends[index] - self._spans[index].size
            self._index, self._context = index, _cipher(self._key, self._spans[index].nonce, self._at - first)
        return self._context, self._ends[index] - self._at


class TurnedContent:
    """A `Content` through a key stream."""

    def __init__(self, source: Content, stream: KeyStream) -> None:
        """Seal, or open, what is read from `source`."""
        self._source = source
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`, nothing at the end."""
        return self._stream.turn(self._source.read(size))


def _cipher(key: CustomerKey, nonce: bytes, offset: int) -> CipherContext:
    counter = (int.from_bytes(nonce, "big") + offset // _BLOCK) % (1 << 8 * NONCE_BYTES)
    context = Cipher(algorithms.AES(key.secret), modes.CTR(counter.to_bytes(NONCE_BYTES, "big"))).encryptor()
    context.update(bytes(offset % _BLOCK))
    return context


def _prove(key: CustomerKey, salt: bytes) -> bytes:
    return hmac.digest(key.secret, b"agent-nas sse-c proof\0" + salt, "sha256")[:16]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _invalid(name: str, message: str) -> S3Fault:
    return S3Fault("InvalidArgument", message, elements={"ArgumentName": name})
