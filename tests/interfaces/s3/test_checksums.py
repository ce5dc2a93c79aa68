"""The five checksums agree with other implementations, whole and put together from parts."""

from __future__ import annotations

import base64
import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.checksums import Algorithm, Checksum, combine, composite, find_checksum, parse_algorithm, parse_checksum, start
from interfaces.s3.faults import S3Fault

COMBINING = [algorithm for algorithm in Algorithm if algorithm.combines]
POLYNOMIALS = {Algorithm.CRC32: 0xEDB88320, Algorithm.CRC32C: 0x82F63B78, Algorithm.CRC64NVME: 0x9A6C9329AC4BC9B5}


def digest(algorithm: Algorithm, data: bytes) -> bytes:
    hasher = start(algorithm)
    hasher.update(data)
    return hasher.digest()


def bitwise(algorithm: Algorithm, data: bytes) -> bytes:
    """Compute a CRC bit by bit from its polynomial."""
    mask = (1 << algorithm.size * 8) - 1
    value = mask
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIALS[algorithm] if value & 1 else 0)
    return (value ^ mask).to_bytes(algorithm.size, "big")


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [
        (Algorithm.CRC32, "cbf43926"),
        (Algorithm.CRC32C, "e3069283"),
        (Algorithm.CRC64NVME, "ae8b14860a799888"),
        (Algorithm.SHA1, hashlib.sha1(b"123456789").hexdigest()),
        (Algorithm.SHA256, hashlib.sha256(b"123456789").hexdigest()),
    ],
)
def test_the_check_value_is_the_published_one(algorithm: Algorithm, value: str) -> None:
    assert digest(algorithm, b"123456789").hex() == value


@given(st.sampled_from(COMBINING), st.binary(max_size=200))
def test_a_crc_is_that_of_its_polynomial(algorithm: Algorithm, data: bytes) -> None:
    assert digest(algorithm, data) == bitwise(algorithm, data)


@given(st.sampled_from(list(Algorithm)), st.lists(st.binary(max_size=100), max_size=5))
def test_a_hasher_does_not_care_how_its_bytes_come(algorithm: Algorithm, pieces: list[bytes]) -> None:
    hasher = start(algorithm)
    for piece in pieces:
        hasher.update(piece)
    assert hasher.digest() == digest(algorithm, b"".join(pieces))


@given(st.sampled_from(COMBINING), st.lists(st.binary(max_size=100), max_size=6))
def test_the_whole_follows_from_its_parts(algorithm: Algorithm, parts: list[bytes]) -> None:
    assert combine(algorithm, [(digest(algorithm, part), len(part)) for part in parts]) == digest(algorithm, b"".join(parts))


def test_a_composite_is_the_checksum_of_checksums_and_a_count() -> None:
    parts = [zlib.crc32(b"one").to_bytes(4, "big"), zlib.crc32(b"two").to_bytes(4, "big")]
    expected = base64.b64encode(zlib.crc32(b"".join(parts)).to_bytes(4, "big")).decode()
    assert composite(Algorithm.CRC32, parts) == f"{expected}-2"


@given(st.sampled_from(list(Algorithm)), st.binary(max_size=50))
def test_a_value_travels_as_base64(algorithm: Algorithm, data: bytes) -> None:
    value = Checksum(algorithm, digest(algorithm, data))
    assert parse_checksum(algorithm, value.text) == value
    assert find_checksum({algorithm.header: value.text, "content-type": "x"}) == value


@given(st.sampled_from(list(Algorithm)), st.text(max_size=60))
def test_any_text_is_a_value_or_a_refusal(algorithm: Algorithm, text: str) -> None:
    try:
        assert len(parse_checksum(algorithm, text).value) == algorithm.size
    except S3Fault as fault:
        assert fault.code == "BadDigest"


def test_two_values_are_refused_and_none_is_none() -> None:
    assert find_checksum({}) is None
    with pytest.raises(S3Fault, match="single"):
        find_checksum({"x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-crc32c": "AAAAAA=="})


def test_an_algorithm_has_a_name_in_any_case() -> None:
    assert parse_algorithm("crc64nvme") is Algorithm.CRC64NVME
    with pytest.raises(S3Fault):
        parse_algorithm("md5")
