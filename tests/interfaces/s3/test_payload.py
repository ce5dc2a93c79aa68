"""A body is what its headers say, or the read that meets its end raises."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping

import pytest
from botocore.httpchecksum import AwsChunkedWrapper, Crc32Checksum
from hypothesis import given
from hypothesis import strategies as st

from interfaces.port import Content
from interfaces.s3.checksums import Algorithm, Checksum, start
from interfaces.s3.faults import S3Fault
from interfaces.s3.payload import (
    MAX_OBJECT,
    SIGNED_CHUNKS,
    TRAILER,
    UNKNOWN,
    UNSIGNED,
    UNSIGNED_CHUNKS,
    BodyPlan,
    Payload,
    check_body,
    plan_body,
)
from tests.interfaces.s3.bodies import Trickle, chain, encode_signed, read_all

DATA = b"some content " * 100


def plan(headers: Mapping[str, str], claim: str = UNSIGNED, length: int = len(DATA)) -> BodyPlan:
    return plan_body({"content-length": str(length), **headers}, Payload(claim, chain()))


def value_of(algorithm: Algorithm, data: bytes = DATA) -> Checksum:
    hasher = start(algorithm)
    hasher.update(data)
    return Checksum(algorithm, hasher.digest())


def refusal(headers: Mapping[str, str], claim: str = UNSIGNED, body: bytes = DATA, length: int = len(DATA)) -> S3Fault:
    with pytest.raises(S3Fault) as caught:
        read_all(plan(headers, claim, length).open(Trickle(body, 100)))
    return caught.value


def test_a_body_is_handed_on_with_its_md5_and_size() -> None:
    content = plan({}).open(Trickle(DATA, 17))
    assert read_all(content, 100) == DATA
    assert (content.md5, content.size, content.checksum) == (hashlib.md5(DATA).digest(), len(DATA), None)


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_checksum_in_a_header_is_verified(algorithm: Algorithm) -> None:
    right = value_of(algorithm)
    content = plan({algorithm.header: right.text}).open(Trickle(DATA, 100))
    assert read_all(content) == DATA
    assert content.checksum == right
    wrong = value_of(algorithm, b"other")
    assert refusal({algorithm.header: wrong.text}).code == "BadDigest"


@pytest.mark.parametrize("claim", [UNSIGNED_CHUNKS, SIGNED_CHUNKS + TRAILER])
@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_checksum_in_a_trailer_is_verified(algorithm: Algorithm, claim: str) -> None:
    for data, fine in ((DATA, True), (b"other", False)):
        trailer = (algorithm.header.encode(), value_of(algorithm, data).text.encode())
        signed = encode_signed([DATA[:500], DATA[500:]], chain(), [trailer])
        body = signed if claim != UNSIGNED_CHUNKS else b"%x\r\n%b\r\n0\r\n%b:%b\r\n\r\n" % (len(DATA), DATA, *trailer)
        headers = {"x-amz-decoded-content-length": str(len(DATA)), "x-amz-trailer": algorithm.header}
        content = plan(headers, claim, len(body)).open(Trickle(body, 99))
        if fine:
            assert read_all(content) == DATA
            assert content.checksum == value_of(algorithm)
        else:
            with pytest.raises(S3Fault) as caught:
                read_all(content)
            assert caught.value.code == "BadDigest"


def test_an_announced_trailer_must_come() -> None:
    headers = {"x-amz-decoded-content-length": "0", "x-amz-trailer": "x-amz-checksum-crc32"}
    assert refusal(headers, UNSIGNED_CHUNKS, b"0\r\n\r\n").code == "InvalidRequest"


def test_a_checksum_that_is_only_named_is_computed() -> None:
    content = plan({"x-amz-sdk-checksum-algorithm": "sha256"}).open(Trickle(DATA))
    read_all(content)
    assert content.checksum == value_of(Algorithm.SHA256)


def test_the_signed_sha256_is_verified() -> None:
    right = hashlib.sha256(DATA).hexdigest()
    assert read_all(plan({}, right).open(Trickle(DATA))) == DATA
    assert refusal({}, hashlib.sha256(b"").hexdigest()).code == "XAmzContentSHA256Mismatch"


def test_the_content_md5_is_verified() -> None:
    right = base64.b64encode(hashlib.md5(DATA).digest()).decode()
    assert (
        read_all(
            plan({"content-md5": right}).open(
                Trickle(DATA),
            )
        )
        == DATA
    )
    wrong = base64.b64encode(hashlib.md5(b"").digest()).decode()
    assert refusal({"content-md5": wrong}).code == "BadDigest"


@pytest.mark.parametrize("body", [DATA[:-1], DATA + b"x", b""])
def test_a_body_of_another_length_is_refused(body: bytes) -> None:
    assert refusal({}, body=body).code == "IncompleteBody"


@given(st.binary(max_size=500), st.integers(1, 200), st.integers(1, 300))
def test_what_botocore_sends_over_https_is_accepted(data: bytes, chunk: int, step: int) -> None:
    body = AwsChunkedWrapper(io.BytesIO(data), Crc32Checksum, "x-amz-checksum-crc32", chunk_size=chunk).read()
    headers = {"x-amz-decoded-content-length": str(len(data)), "x-amz-trailer": "x-amz-checksum-crc32"}
    content = plan(headers, UNSIGNED_CHUNKS, len(body)).open(Trickle(body, step))
    assert read_all(content) == data
    assert content.checksum == value_of(Algorithm.CRC32, data)


@pytest.mark.parametrize(
    ("headers", "claim", "code", "status"),
    [
        ({"content-length": "x"}, UNSIGNED, "InvalidArgument", 400),
        ({"content-length": str(MAX_OBJECT + 1)}, UNSIGNED, "EntityTooLarge", 400),
        ({}, SIGNED_CHUNKS, "MissingContentLength", 411),
        ({}, "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "InvalidArgument", 400),
        ({}, "0" * 63, "InvalidArgument", 400),
        ({"content-md5": "YWJyYWNhZGFicmE="}, UNSIGNED, "InvalidDigest", 400),
        ({"content-md5": ""}, UNSIGNED, "InvalidDigest", 400),
        ({"content-md5": "\xff"}, UNSIGNED, "InvalidDigest", 400),
        ({"x-amz-checksum-crc32": "bad"}, UNSIGNED, "BadDigest", 400),
        ({"x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-crc32c": "AAAAAA=="}, UNSIGNED, "InvalidRequest", 400),
        ({"x-amz-checksum-crc32": "AAAAAA==", "x-amz-sdk-checksum-algorithm": "SHA1"}, UNSIGNED, "InvalidRequest", 400),
        ({"x-amz-sdk-checksum-algorithm": "MD4"}, UNSIGNED, "InvalidRequest", 400),
        ({"x-amz-trailer": "x-amz-checksum-md4", "x-amz-decoded-content-length": "1"}, UNSIGNED_CHUNKS, "InvalidRequest", 400),
        ({"x-amz-trailer": "x-amz-meta-a", "x-amz-decoded-content-length": "1"}, UNSIGNED_CHUNKS, "InvalidRequest", 400),
    ],
)
def test_headers_that_cannot_be_are_refused_before_the_body(headers: dict[str, str], claim: str, code: str, status: int) -> None:
    with pytest.raises(S3Fault) as caught:
        plan(headers, claim)
    assert (caught.value.code, caught.value.status) == (code, status)


def test_a_body_may_say_its_length_by_ending() -> None:
    made = plan_body({"transfer-encoding": "chunked"}, Payload(hashlib.sha256(DATA).hexdigest(), chain()))
    assert made.length == UNKNOWN
    content = made.open(Trickle(DATA, 99))
    assert read_all(content) == DATA
    assert content.size == len(DATA)


def test_a_body_that_never_ends_is_too_large() -> None:
    class Endless:
        def read(self, size: int, /) -> bytes:
            return bytes(1 << 27)

    content = plan_body({"transfer-encoding": "chunked"}, Payload(UNSIGNED, chain())).open(Endless(), md5=False)
    with pytest.raises(S3Fault) as caught:
        read_all(Swallowing(content))
    assert caught.value.code == "EntityTooLarge"


class Swallowing:
    """Reads everything and keeps nothing."""

    def __init__(self, source: Content) -> None:
        self._source = source

    def read(self, size: int, /) -> bytes:
        while self._source.read(size):
            pass
        return b""


def test_the_checksum_in_a_completion_is_not_that_of_its_body() -> None:
    headers = {"content-length": "4", "x-amz-checksum-crc32": "AAAAAA==-3"}
    made = plan_body(headers, Payload(UNSIGNED, chain()), checksums=False)
    assert check_body(made, b"body") == b"body"
    with pytest.raises(S3Fault):
        plan_body(headers, Payload(UNSIGNED, chain()))


def test_a_body_without_a_length_is_refused() -> None:
    with pytest.raises(S3Fault) as caught:
        plan_body({}, Payload(UNSIGNED, chain()))
    assert caught.value.code == "MissingContentLength"


@pytest.mark.parametrize("body", [b"", b"<Delete/>"])
def test_a_document_is_checked_like_an_object(body: bytes) -> None:
    right = plan({}, hashlib.sha256(body).hexdigest(), len(body))
    assert check_body(right, body) == body
    with pytest.raises(S3Fault):
        check_body(right, body + b" ")


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "content-length",
                "content-md5",
                "x-amz-decoded-content-length",
                "x-amz-trailer",
                "x-amz-checksum-sha1",
                "x-amz-sdk-checksum-algorithm",
            ]
        ),
        st.text(max_size=30),
    ),
    st.sampled_from([UNSIGNED, SIGNED_CHUNKS, UNSIGNED_CHUNKS]),
)
def test_any_headers_make_a_plan_or_a_refusal(headers: dict[str, str], claim: str) -> None:
    try:
        made = plan_body(headers, Payload(claim, chain()))
    except S3Fault as fault:
        assert fault.status in {400, 411}
    else:
        assert UNKNOWN <= made.length <= MAX_OBJECT
