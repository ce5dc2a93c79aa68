"""From request lines to buckets, keys and operations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.faults import S3Fault
from interfaces.s3.routing import name_operation, read_source, split_target

NAMES = frozenset({"localhost", "127.0.0.1", "nas.example.org"})


@pytest.mark.parametrize(
    ("path", "host", "target"),
    [
        (b"/", "localhost", ("", b"")),
        (b"/bucket", "localhost:8420", ("bucket", b"")),
        (b"/bucket/", "127.0.0.1", ("bucket", b"")),
        (b"/bucket/a/b", "127.0.0.1:8420", ("bucket", b"a/b")),
        (b"/bucket//a//", "localhost", ("bucket", b"/a//")),
        (b"/bucket/a%2Fb%20c%25", "localhost", ("bucket", b"a/b c%")),
        (b"/a/b", "bucket.localhost:8420", ("bucket", b"a/b")),
        (b"/a/b", "bucket.nas.example.org", ("bucket", b"a/b")),
        (b"/a/b", "bucket.other.example.org", ("a", b"b")),
        (b"/", "Bucket.localhost", ("bucket", b"")),
    ],
)
def test_a_bucket_is_in_the_path_or_in_the_host(path: bytes, host: str, target: tuple[str, bytes]) -> None:
    assert split_target(path, host, NAMES) == target


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(S3Fault) as caught:
        split_target(b"/bucket/%ff", "localhost", NAMES)
    assert caught.value.code == "InvalidURI"


@pytest.mark.parametrize(
    ("method", "bucket", "key", "parameters", "headers", "name"),
    [
        ("GET", "", b"", {}, {}, "GET service"),
        ("GET", "b", b"", {}, {}, "GET bucket"),
        ("GET", "b", b"", {"list-type": "2"}, {}, "GET bucket list-type"),
        ("GET", "b", b"", {"versions": "", "prefix": "uploads"}, {}, "GET bucket versions"),
        ("PUT", "b", b"k", {}, {}, "PUT object"),
        ("PUT", "b", b"k", {}, {"x-amz-copy-source": "b/x"}, "PUT object copy"),
        ("PUT", "b", b"k", {"uploadId": "1", "partNumber": "1"}, {"x-amz-copy-source": "b/x"}, "PUT object uploadId copy"),
        ("PUT", "b", b"k", {"tagging": ""}, {"x-amz-copy-source": "b/x"}, "PUT object tagging"),
        ("GET", "b", b"k", {"versionId": "v", "partNumber": "1"}, {}, "GET object"),
    ],
)
def test_an_operation_has_one_name(
    method: str, bucket: str, key: bytes, parameters: dict[str, str], headers: dict[str, str], name: str
) -> None:
    assert name_operation(method, bucket, key, parameters, headers) == name


def test_two_subresources_contradict_each_other() -> None:
    with pytest.raises(S3Fault) as caught:
        name_operation("GET", "b", b"", {"acl": "", "tagging": ""}, {})
    assert caught.value.code == "InvalidRequest"


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ("bucket/a/b", ("bucket", b"a/b", None)),
        ("/bucket/a%20b", ("bucket", b"a b", None)),
        ("bucket/a?versionId=v1", ("bucket", b"a", "v1")),
        ("bucket/a%3FversionId%3Dv1", ("bucket", b"a?versionId=v1", None)),
        ("bucket%2Fa", ("bucket", b"a", None)),
    ],
)
def test_the_source_of_a_copy_is_bucket_key_and_version(value: str, source: tuple[str, bytes, str | None]) -> None:
    assert read_source(value) == source


@pytest.mark.parametrize("value", ["", "bucket", "bucket/", "/"])
def test_a_source_without_bucket_or_key_is_refused(value: str) -> None:
    with pytest.raises(S3Fault) as caught:
        read_source(value)
    assert caught.value.code == "InvalidArgument"


@given(st.text(max_size=60))
def test_no_source_breaks_the_parser(value: str) -> None:
    try:
        bucket, key, _ = read_source(value)
    except S3Fault:
        return
    assert bucket
    assert key
