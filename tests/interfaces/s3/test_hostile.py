"""Requests nobody should send: every one gets an answer in Amazon's words, nothing becomes visible, nothing grows."""

from __future__ import annotations

import hashlib
import resource
import socket
import string
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from xml.etree.ElementTree import fromstring

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interfaces.s3.codes import CODES
from tests.interfaces.s3.conftest import Shop

BOMB = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "' + b"x" * 1000 + b'"><!ENTITY b "' + b"&a;" * 1000 + b'">]><Delete>&b;</Delete>'
METHODS = st.sampled_from(["GET", "PUT", "HEAD", "DELETE", "POST", "PATCH"])
NAMES = (
    "acl attributes continuation-token cors delete delimiter encoding-type fetch-owner key-marker legal-hold lifecycle "
    "list-type location marker max-keys nonsense partNumber policy prefix publicAccessBlock response-content-type retention "
    "start-after tagging uploadId uploads versionId version-id-marker versioning versions x-id"
)
HEADERS = (
    "content-md5 content-type expect if-match if-modified-since if-none-match if-unmodified-since range x-amz-acl "
    "x-amz-checksum-algorithm x-amz-checksum-crc32 x-amz-checksum-mode x-amz-copy-source x-amz-copy-source-range "
    "x-amz-decoded-content-length x-amz-expected-bucket-owner x-amz-if-match-size x-amz-meta-a x-amz-metadata-directive "
    "x-amz-object-attributes x-amz-sdk-checksum-algorithm x-amz-server-side-encryption "
    "x-amz-server-side-encryption-customer-key x-amz-storage-class x-amz-tagging x-amz-trailer"
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
VALUES = st.one_of(
    st.text(string.printable.translate(str.maketrans("", "", "\r\n\x0b\x0c")), max_size=20).map(str.strip),
    st.sampled_from(
        ["*", "0", "-1", "1", "bytes=0-", "bytes=-1", "AES256", "COPY", "REPLACE", "CRC32", "public-read", "/bucket-1/a", "9" * 30]
    ),
)
BODIES = st.one_of(st.binary(max_size=50), st.sampled_from([b"", b"<Delete/>", b"<Tagging><TagSet/></Tagging>", b"<a>" * 99, BOMB]))


@pytest.fixture(scope="module")
def bucket(shop: Shop) -> str:
    client = shop.of_principal("maker")
    name = shop.bucket(client)
    client.put_object(Bucket=name, Key="a", Body=b"data")
    return name


@pytest.fixture(scope="module")
def credentials(shop: Shop) -> Credentials:
    return Credentials(*shop.house.key_pair("maker"))


def send(url: str, method: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, bytes]:
    """Send a request as it is, and return status and body."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def signed(credentials: Credentials, url: str, method: str, headers: dict[str, str], body: bytes = b"") -> dict[str, str]:
    request = AWSRequest(method, url, headers, body)
    S3SigV4Auth(credentials, "s3", "local").add_auth(request)
    return {name: str(value) for name, value in request.headers.items()}


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    METHODS,
    TEXT,
    st.dictionaries(st.sampled_from(NAMES.split()), TEXT, max_size=3),
    st.dictionaries(st.sampled_from(HEADERS.split()), VALUES, max_size=4),
    BODIES,
)
def test_any_signed_request_is_answered(
    shop: Shop, bucket: str, credentials: Credentials, method: str, key: str, query: dict[str, str], headers: dict[str, str], body: bytes
) -> None:
    url = f"{shop.url}/{bucket}/{quote(key, safe='/~')}" + (f"?{urlencode(query, quote_via=quote)}" if query else "")
    status, answer = send(url, method, signed(credentials, url, method, headers, body), body)
    assert status < 500 or status == 501, (status, answer)
    if status >= 400 and method != "HEAD" and answer:
        assert fromstring(answer).findtext("Code") in CODES


@pytest.mark.parametrize("parameter", ["versionId", "response-content-type", "response-expires"])
@pytest.mark.parametrize("value", ["x\r\nset-cookie: a=b", "\u0100", "x\0"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_no_answer_repeats_in_its_head_what_a_query_made_up(
    shop: Shop, bucket: str, credentials: Credentials, method: str, parameter: str, value: str
) -> None:
    url = f"{shop.url}/{bucket}/{'a' if method != 'DELETE' else 'absent'}?{parameter}={quote(value)}"
    status, answer = send(url, method, signed(credentials, url, method, {}))
    assert status == (204 if method == "DELETE" and parameter != "versionId" else 400), answer


@pytest.mark.parametrize("path", ["/", "/main", "/main/a?uploads", "/?x=1"])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
def test_an_anonymous_request_is_denied_whatever_it_names(shop: Shop, method: str, path: str) -> None:
    status, answer = send(shop.url + path, method, {})
    assert (status, fromstring(answer).findtext("Code")) == (403, "AccessDenied")


@pytest.mark.parametrize("body", [BOMB, b"<Delete>" + b"<a/>" * 200_000, b"<a>" * 100_000, b"\xff\xfe" * 1000])
def test_a_bomb_of_xml_is_refused_and_takes_no_memory(shop: Shop, bucket: str, credentials: Credentials, body: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    url = f"{shop.url}/{bucket}?delete="
    for _ in range(3):
        status, answer = send(url, "POST", signed(credentials, url, "POST", {}, body), body)
        assert (status, fromstring(answer).findtext("Code")) == (400, "MalformedXML")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_document_over_the_cap_is_refused(shop: Shop, bucket: str, credentials: Credentials) -> None:
    url, body = f"{shop.url}/{bucket}?delete=", b" " * (3 << 20)
    status, answer = send(url, "POST", signed(credentials, url, "POST", {}, body), body)
    assert (status, fromstring(answer).findtext("Code")) == (413, "EntityTooLarge")


@pytest.mark.parametrize(("length", "fits"), [(1024, True), (1025, False), (8000, False)])
def test_a_key_over_its_length_is_refused(shop: Shop, bucket: str, credentials: Credentials, length: int, fits: bool) -> None:
    url = f"{shop.url}/{bucket}/{'k' * length}"
    status, answer = send(url, "PUT", signed(credentials, url, "PUT", {}, b"x"), b"x")
    assert status == (200 if fits else 400)
    if not fits:
        assert fromstring(answer).findtext("Code") == "KeyTooLongError"


def test_headers_over_their_size_are_refused(shop: Shop, bucket: str) -> None:
    status, _ = send(f"{shop.url}/{bucket}/a", "GET", {"x-amz-meta-a": "x" * (300 << 10)})
    assert status == 431


@pytest.mark.parametrize(
    ("encoded", "length", "code"),
    [
        (b"4\r\ndata\r\n0\r\n\r\n", 5, "IncompleteBody"),
        (b"4\r\ndata\r\n0\r\n\r\n", 3, "IncompleteBody"),
        (b"ffffffff\r\ndata", 4, "IncompleteBody"),
        (b"4\r\ndata\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", 4, "BadDigest"),
        (b"zz\r\n", 4, "InvalidRequest"),
        (b"", 0, "IncompleteBody"),
    ],
)
def test_a_lie_in_a_chunked_body_stores_nothing(
    shop: Shop, bucket: str, credentials: Credentials, encoded: bytes, length: int, code: str
) -> None:
    url = f"{shop.url}/{bucket}/lie"
    headers = {
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": str(length),
        "content-encoding": "aws-chunked",
        **({"x-amz-trailer": "x-amz-checksum-crc32"} if b"crc32" in encoded else {}),
    }
    request = AWSRequest("PUT", url, headers, encoded)
    request.context["checksum"] = {"request_algorithm": {"in": "trailer", "algorithm": "crc32"}}
    S3SigV4Auth(credentials, "s3", "local").add_auth(request)
    status, answer = send(url, "PUT", {name: str(value) for name, value in request.headers.items()}, encoded)
    assert (status, fromstring(answer).findtext("Code")) == (400, code)
    with pytest.raises(ClientError, match="404"):
        shop.of_principal("maker").head_object(Bucket=bucket, Key="lie")


def test_a_client_that_leaves_in_the_middle_stores_nothing(shop: Shop, bucket: str, credentials: Credentials, maker: Any) -> None:
    url, body = f"{shop.url}/{bucket}/left", b"x" * (1 << 20)
    headers = signed(credentials, url, "PUT", {"content-length": str(len(body))}, body)
    assert headers["X-Amz-Content-SHA256"] == hashlib.sha256(body).hexdigest()
    parts = urlsplit(url)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as connection:
        connection.sendall(f"PUT {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{head}\r\n".encode() + body[: 1 << 19])
    with pytest.raises(ClientError, match="404"):
        maker.head_object(Bucket=bucket, Key="left")
    assert "left" not in {entry["Key"] for entry in maker.list_objects_v2(Bucket=bucket)["Contents"]}
