"""What a request says of its body, and whether the body is that.

1. What headers say is judged before a byte is read: lengths, digests, the checksum and how it travels.
2. A body is checked while it is pulled, in the pulling thread: encoding and chunk signatures, length, SHA-256, Content-MD5 and
   checksum. Anything that is wrong makes the read that meets the end raise, so nothing that was read is ever published.
3. The MD5 of the content is computed on the way, since the entity tag needs it; nothing is read twice.
4. One thread reads one body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from interfaces.port import Content
from interfaces.s3.checksums import Algorithm, Checksum, algorithm_of_header, find_checksum, parse_algorithm, parse_checksum, start
from interfaces.s3.chunks import Chain, ChunkedContent
from interfaces.s3.faults import S3Fault

UNSIGNED = "UNSIGNED-PAYLOAD"
SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
TRAILER = "-TRAILER"
UNSIGNED_CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
MAX_OBJECT = 5 << 40
MAX_UNSAID = 5 << 30
"""Bytes of the largest body that does not say its length before: as many as a single put may have."""

UNKNOWN = -1
"""The length of a body that says it by ending (``Transfer-Encoding: chunked``)."""

_PIECE = 1 << 20
_STREAMING = frozenset({SIGNED_CHUNKS, SIGNED_CHUNKS + TRAILER, UNSIGNED_CHUNKS})


@dataclass(frozen=True, slots=True)
class Payload:
    """How a signature covers a body: `stated` is what ``x-amz-content-sha256`` says, `chain` what would sign its chunks."""

    stated: str
    chain: Chain

    @property
    def chunked(self) -> bool:
        """Tell whether the body is in ``aws-chunked`` encoding."""
        return self.stated in _STREAMING

    @property
    def trailed(self) -> bool:
        """Tell whether trailers follow the body."""
        return self.stated.endswith(TRAILER)


@dataclass(frozen=True, slots=True)
class BodyPlan:
    """What a body has to be. `length` is that of the content, without any encoding, or `UNKNOWN`; empty digests were not stated.

    `algorithm` is the checksum to compute, `checksum` its value when it is known before the body, `trailer` whether it comes after.
    """

    length: int
    payload: Payload
    sha256: str = ""
    md5: bytes = b""
    algorithm: Algorithm | None = None
    checksum: Checksum | None = None
    trailer: bool = False

    def open(self, source: Content, *, md5: bool = True) -> CheckedContent:
        """Return the content of the body that `source` reads; `md5` tells whether its MD5 is wanted even where none was stated."""
        if self.payload.chunked:
            chain = None if self.payload.stated == UNSIGNED_CHUNKS else self.payload.chain
            source = ChunkedContent(source, chain, trailed=self.payload.trailed)
        return CheckedContent(self, source, md5=md5 or bool(self.md5))


class CheckedContent:
    """A `Content` that raises where the body is not what its request says. Its results count once `read` returned nothing."""

    def __init__(self, plan: BodyPlan, source: Content, *, md5: bool) -> None:
        """Check what is read from `source` against `plan`."""
        self._plan = plan
        self._source = source
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 else None
        self._sha256 = hashlib.sha256() if plan.sha256 else None
        self._sum = start(plan.algorithm) if plan.algorithm else None
        self._hashers = [hasher for hasher in (self._md5, self._sha256, self._sum) if hasher is not None]
        self._limit = MAX_UNSAID if plan.length == UNKNOWN else plan.length
        self._checked = False
        self.size = 0
        self.checksum: Checksum | None = None

    @property
    def md5(self) -> bytes:
        """Return the MD5 of what was read, empty when it was not wanted."""
        return self._md5.digest() if self._md5 else b""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to `size`, nothing at the end. Raises `S3Fault` when the body is not what it has to be."""
        data = self._source.read(size)
        self.size += len(data)
        if self.size > self._limit:
            raise self._too_long()
        for hasher in self._hashers:
            hasher.update(data)
        if not data and not self._checked:
            self._check()
        return data

    def _check(self) -> None:
        self._checked = True
        plan = self._plan
        if plan.length not in {UNKNOWN, self.size}:
            raise S3Fault("IncompleteBody")
        if self._sha256 and not hmac.compare_digest(self._sha256.hexdigest(), plan.sha256):
            told = {"ClientComputedContentSHA256": plan.sha256, "S3ComputedContentSHA256": self._sha256.hexdigest()}
            raise S3Fault("XAmzContentSHA256Mismatch", elements=told)
        if plan.md5 and plan.md5 != self.md5:
            raise S3Fault("BadDigest", "The Content-MD5 you specified did not match what we received.")
        if self._sum and plan.algorithm:
            self._check_sum(Checksum(plan.algorithm, self._sum.digest()))

    def _too_long(self) -> S3Fault:
        if self._plan.length == UNKNOWN:
            return S3Fault("EntityTooLarge")
        return S3Fault("IncompleteBody", "The request body is longer than it was announced")

    def _check_sum(self, computed: Checksum) -> None:
        stated = self._plan.checksum or self._trailing(computed.algorithm)
        if stated and stated != computed:
            name = computed.algorithm.value
            raise S3Fault("BadDigest", f"The {name} you specified did not match the calculated checksum.")
        self.checksum = computed

    def _trailing(self, algorithm: Algorithm) -> Checksum | None:
        if not self._plan.trailer:
            return None
        text = self._source.trailers.get(algorithm.header) if isinstance(self._source, ChunkedContent) else None
        if text is None:
            raise S3Fault("InvalidRequest", f"The trailer {algorithm.header} was announced and is missing")
        return parse_checksum(algorithm, text)


def plan_body(headers: Mapping[str, str], payload: Payload, *, checksums: bool = True) -> BodyPlan:
    """Return what the body of a request has to be. Raises `S3Fault` where its headers contradict themselves or say too little.

    `checksums` tells whether the checksum in the headers is that of the body; in a completion it is that of the object.
    """
    trailing = _trailing_algorithm(headers) if payload.trailed else None
    checksum = find_checksum(headers) if checksums else None
    named = _named_algorithm(headers) if checksums else None
    if trailing and checksum:
        raise S3Fault("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
    stated = trailing or (checksum.algorithm if checksum else None)
    if named and stated and named is not stated:
        raise S3Fault("InvalidRequest", "Value for x-amz-sdk-checksum-algorithm header is invalid.")
    return BodyPlan(
        _length(headers, payload),
        payload,
        sha256=_sha256(payload),
        md5=_md5(headers),
        algorithm=stated or named,
        checksum=checksum,
        trailer=trailing is not None,
    )


def check_body(plan: BodyPlan, body: bytes) -> bytes:
    """Return the content of a body that was read whole, for documents. Raises `S3Fault`."""
    content = plan.open(_Whole(body), md5=False)
    pieces = []
    while piece := content.read(_PIECE):
        pieces.append(piece)
    return b"".join(pieces)


class _Whole:
    """A body in memory."""

    def __init__(self, body: bytes) -> None:
        self._rest = memoryview(body)

    def read(self, size: int, /) -> bytes:
        piece, self._rest = self._rest[:size], self._rest[size:]
        return bytes(piece)


def _length(headers: Mapping[str, str], payload: Payload) -> int:
    name = "x-amz-decoded-content-length" if payload.chunked else "content-length"
    text = headers.get(name)
    if text is None and headers.get("transfer-encoding", "").lower() == "chunked":
        return UNKNOWN
    if text is None:
        raise S3Fault("MissingContentLength")
    if not (text.isascii() and text.isdecimal()) or len(text) > 20:
        raise S3Fault("InvalidArgument", f"{name} must be a number of bytes")
    if int(text) > MAX_OBJECT:
        raise S3Fault("EntityTooLarge")
    return int(text)


def _sha256(payload: Payload) -> str:
    stated = payload.stated
    if stated == UNSIGNED or payload.chunked:
        return ""
    if len(stated) != 64 or stated.strip("0123456789abcdef"):
        raise S3Fault(
            "InvalidArgument",
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- value of HMAC-SHA256, or a valid sha256 value.",
            elements={"ArgumentName": "x-amz-content-sha256", "ArgumentValue": stated[:128]},
        )
    return stated


def _md5(headers: Mapping[str, str]) -> bytes:
    text = headers.get("content-md5")
    if text is None:
        return b""
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != 16:
        raise S3Fault("InvalidDigest", elements={"Content-MD5": text})
    return digest


def _named_algorithm(headers: Mapping[str, str]) -> Algorithm | None:
    name = headers.get("x-amz-sdk-checksum-algorithm")
    return parse_algorithm(name) if name else None


def _trailing_algorithm(headers: Mapping[str, str]) -> Algorithm | None:
    announced = [name.strip().lower() for name in headers.get("x-amz-trailer", "").split(",") if name.strip()]
    found = [algorithm_of_header(name) for name in announced]
    if len(found) > 1 or None in found:
        raise S3Fault("InvalidRequest", "The value specified in the x-amz-trailer header is not supported")
    return found[0] if found else None
