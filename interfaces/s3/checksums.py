"""The checksums clients may ask for: five algorithms, whole or of parts. Pure.

1. A checksum travels as base64 in a header or trailer named after its algorithm.
2. The checksum of an object uploaded in parts is either `composite` (the checksum of the parts' checksums, with the number of parts
   behind a dash) or, for the CRCs, that of the whole object, `combine`\\ d from the parts without reading them again.
3. CRCs leave the interpreter's lock, as those of hashlib do: they are computed where the bytes are pulled.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from awscrt import checksums as crt

from interfaces.s3.faults import S3Fault


class Hasher(Protocol):
    """Takes bytes one after the other."""

    def update(self, data: bytes, /) -> None:
        """Take the next bytes."""

    def digest(self) -> bytes:
        """Return the value of all bytes so far."""


class Algorithm(enum.Enum):
    """The algorithms, by the name Amazon gives them."""

    CRC32 = "CRC32"
    CRC32C = "CRC32C"
    CRC64NVME = "CRC64NVME"
    SHA1 = "SHA1"
    SHA256 = "SHA256"

    @property
    def header(self) -> str:
        """Return the header or trailer that carries a value of it."""
        return f"x-amz-checksum-{self.value.lower()}"

    @property
    def element(self) -> str:
        """Return the XML element that carries a value of it."""
        return f"Checksum{self.value}"

    @property
    def size(self) -> int:
        """Return the length of a value in bytes."""
        return _SIZES[self]

    @property
    def combines(self) -> bool:
        """Tell whether the value of a whole follows from those of its parts."""
        return self in _CRCS


@dataclass(frozen=True, slots=True)
class Checksum:
    """A value of one algorithm."""

    algorithm: Algorithm
    value: bytes

    @property
    def text(self) -> str:
        """Return the value as it travels."""
        return base64.b64encode(self.value).decode()


@dataclass(frozen=True, slots=True)
class _Crc:
    step: Callable[[bytes, int], int]
    combine: Callable[[int, int, int], int]


_SIZES: Mapping[Algorithm, int] = {
    Algorithm.CRC32: 4,
    Algorithm.CRC32C: 4,
    Algorithm.CRC64NVME: 8,
    Algorithm.SHA1: 20,
    Algorithm.SHA256: 32,
}
_CRCS: Mapping[Algorithm, _Crc] = {
    Algorithm.CRC32: _Crc(zlib.crc32, crt.combine_crc32),
    Algorithm.CRC32C: _Crc(crt.crc32c, crt.combine_crc32c),
    Algorithm.CRC64NVME: _Crc(crt.crc64nvme, crt.combine_crc64nvme),
}
_BY_HEADER = {algorithm.header: algorithm for algorithm in Algorithm}


class _CrcHasher:
    __slots__ = ("_size", "_step", "_value")

    def __init__(self, algorithm: Algorithm) -> None:
        self._step = _CRCS[algorithm].step
        self._size = algorithm.size
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = self._step(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(self._size, "big")


def start(algorithm: Algorithm) -> Hasher:
    """Return a hasher that has seen nothing."""
    if algorithm in _CRCS:
        return _CrcHasher(algorithm)
    return hashlib.sha1(usedforsecurity=False) if algorithm is Algorithm.SHA1 else hashlib.sha256()


def parse_algorithm(name: str) -> Algorithm:
    """Return the algorithm of a name, in any case. Raises ``InvalidRequest``."""
    try:
        return Algorithm(name.upper())
    except ValueError as error:
        raise S3Fault(
            "InvalidRequest",
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: "
            f"[{', '.join(algorithm.value for algorithm in Algorithm)}]",
        ) from error


def algorithm_of_header(name: str) -> Algorithm | None:
    """Return the algorithm a header (lower case) carries a value of."""
    return _BY_HEADER.get(name)


def parse_checksum(algorithm: Algorithm, text: str) -> Checksum:
    """Return the value that `text` says. Raises ``BadDigest``: what is no value matches nothing."""
    try:
        value = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        value = b""
    if len(value) != algorithm.size:
        raise S3Fault("BadDigest", f"Value for {algorithm.header} header is invalid.")
    return Checksum(algorithm, value)


def find_checksum(headers: Mapping[str, str]) -> Checksum | None:
    """Return the value that headers carry. Raises ``BadDigest`` for one that is malformed, ``InvalidRequest`` for several."""
    found = [parse_checksum(algorithm, headers[name]) for name, algorithm in _BY_HEADER.items() if name in headers]
    if len(found) > 1:
        raise S3Fault("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
    return found[0] if found else None


def composite(algorithm: Algorithm, digests: Sequence[bytes]) -> str:
    """Return the value of an object of parts, of their values: base64, a dash and how many there are."""
    whole = start(algorithm)
    for digest in digests:
        whole.update(digest)
    return f"{Checksum(algorithm, whole.digest()).text}-{len(digests)}"


def combine(algorithm: Algorithm, parts: Sequence[tuple[bytes, int]]) -> bytes:
    """Return the value of a whole from the (value, length) of its parts in order. Raises `KeyError` unless the algorithm `combines`."""
    join = _CRCS[algorithm].combine
    values = [(int.from_bytes(value, "big"), length) for value, length in parts]
    total, _ = reduce(lambda left, right: (join(left[0], right[0], right[1]), 0), values, (0, 0))
    return total.to_bytes(algorithm.size, "big")
