"""The documents clients send are understood as Amazon's own library writes them, and bounded."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import botocore.session
import pytest
from botocore.serialize import create_serializer
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3 import documents
from interfaces.s3.checksums import Algorithm, Checksum
from interfaces.s3.documents import CompletedPart, Deletion, Doomed
from interfaces.s3.faults import S3Fault

MODEL = botocore.session.get_session().get_service_model("s3")
SERIALIZER = create_serializer("rest-xml", include_validation=False)
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=30)
PARSERS = [
    documents.parse_deletion,
    documents.parse_completion,
    documents.parse_tagging,
    documents.parse_versioning,
    documents.parse_location,
]


def written(operation: str, **parameters: Any) -> bytes:
    """Return the body botocore sends for an operation."""
    body: bytes = SERIALIZER.serialize_to_request(parameters, MODEL.operation_model(operation))["body"]
    return body


def refusal(parse: Any, *arguments: Any) -> str:
    with pytest.raises(S3Fault) as caught:
        parse(*arguments)
    return caught.value.code


@given(st.lists(st.tuples(TEXT, st.sampled_from(["", "v1"]), st.sampled_from(["", "abc"])), min_size=1, max_size=5), st.booleans())
def test_a_deletion_is_read_as_written(objects: list[tuple[str, str, str]], quiet: bool) -> None:
    sent = [
        {"Key": key} | ({"VersionId": version} if version else {}) | ({"ETag": f'"{etag}"'} if etag else {})
        for key, version, etag in objects
    ]
    body = written("DeleteObjects", Bucket="b", Delete={"Objects": sent, "Quiet": quiet})
    assert documents.parse_deletion(body) == Deletion(tuple(Doomed(*given) for given in objects), quiet)


@pytest.mark.parametrize("count", [0, 1001])
def test_a_deletion_has_1_to_1000_objects(count: int) -> None:
    body = b"<Delete>" + b"<Object><Key>a</Key></Object>" * count + b"</Delete>"
    assert refusal(documents.parse_deletion, body) == "MalformedXML"


def test_a_deletion_without_a_key_is_malformed() -> None:
    assert refusal(documents.parse_deletion, b"<Delete><Object><Key/></Object></Delete>") == "MalformedXML"


def test_a_completion_is_read_as_written() -> None:
    parts = [{"PartNumber": 1, "ETag": '"one"', "ChecksumCRC32": "AAAAAA=="}, {"PartNumber": 7, "ETag": "two"}]
    body = written("CompleteMultipartUpload", Bucket="b", Key="k", UploadId="u", MultipartUpload={"Parts": parts})
    expected = (CompletedPart(1, "one", Checksum(Algorithm.CRC32, b"\0" * 4)), CompletedPart(7, "two"))
    assert documents.parse_completion(body) == expected


@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ([], "MalformedXML"),
        ([2, 1], "InvalidPartOrder"),
        ([1, 1], "InvalidPartOrder"),
        ([0], "InvalidArgument"),
        ([10_001], "InvalidArgument"),
        (["x"], "InvalidArgument"),
        (["٣"], "InvalidArgument"),
        (range(1, 10_002), "MalformedXML"),
    ],
)
def test_parts_are_in_order_and_bounded(numbers: Any, code: str) -> None:
    parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>a</ETag></Part>" for number in numbers)
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    assert refusal(documents.parse_completion, body) in {code, "InvalidArgument"}


@given(st.dictionaries(TEXT, TEXT, max_size=10))
def test_tags_are_read_as_written_in_a_document_and_in_a_header(tags: dict[str, str]) -> None:
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    body = written("PutObjectTagging", Bucket="b", Key="k", Tagging={"TagSet": pairs})
    assert documents.parse_tagging(body) == tuple(tags.items())
    assert documents.parse_tag_header(urlencode(tags)) == tuple(sorted(tags.items()))


def test_a_key_alone_in_a_header_is_a_tag_without_a_value() -> None:
    assert documents.parse_tag_header("foo=bar&bar") == (("bar", ""), ("foo", "bar"))


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([(str(number), "") for number in range(11)], "InvalidTag"),
        ([("a", "1"), ("a", "2")], "InvalidTag"),
        ([("", "1")], "InvalidTag"),
        ([("a" * 129, "1")], "InvalidTag"),
        ([("a", "1" * 257)], "InvalidTag"),
    ],
)
def test_tags_are_bounded(pairs: list[tuple[str, str]], code: str) -> None:
    assert refusal(documents.check_tags, pairs, 10) == code
    assert refusal(documents.parse_tag_header, urlencode(pairs)) in {code, "InvalidArgument"}


@pytest.mark.parametrize("value", ["a=%ff", "=value", "=" * 3 + "&a", "&".join(["a=1"] * 20)])
def test_a_tag_header_that_is_no_query_is_refused(value: str) -> None:
    assert refusal(documents.parse_tag_header, value) in {"InvalidArgument", "InvalidTag"}


def test_versioning_is_one_of_two_words() -> None:
    for status in ("Enabled", "Suspended"):
        body = written("PutBucketVersioning", Bucket="b", VersioningConfiguration={"Status": status})
        assert documents.parse_versioning(body) == status
    empty = written("PutBucketVersioning", Bucket="b", VersioningConfiguration={})
    assert refusal(documents.parse_versioning, empty) == "IllegalVersioningConfigurationException"
    second_factor = written("PutBucketVersioning", Bucket="b", VersioningConfiguration={"Status": "Enabled", "MFADelete": "Enabled"})
    assert refusal(documents.parse_versioning, second_factor) == "NotImplemented"


def test_a_location_may_be_missing() -> None:
    body = written("CreateBucket", Bucket="b", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    assert documents.parse_location(body) == "eu-west-1"
    assert documents.parse_location(b" ") == documents.parse_location(b"<CreateBucketConfiguration/>") == ""


@given(st.sampled_from(PARSERS), st.binary(max_size=200))
def test_any_bytes_are_a_document_or_a_refusal(parse: Any, body: bytes) -> None:
    try:
        parse(body)
    except S3Fault as fault:
        assert fault.status in {400, 501}


@given(st.text(max_size=60))
def test_any_tag_header_is_read_or_refused(value: str) -> None:
    try:
        assert len(documents.parse_tag_header(value)) <= documents.MAX_OBJECT_TAGS
    except S3Fault as fault:
        assert fault.status == 400
