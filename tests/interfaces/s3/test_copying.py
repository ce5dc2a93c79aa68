"""Copies of objects and of parts."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import pytest

from tests.interfaces.s3.conftest import Shop
from tests.interfaces.s3.test_objects import MIB, body, code_of, workspace_of


def source(bucket: str, key: str = "k", **more: str) -> dict[str, str]:
    return {"Bucket": bucket, "Key": key, **more}


@pytest.mark.parametrize("size", [0, 5, 2 * MIB])
def test_a_copy_has_the_bytes_the_tag_and_what_was_said_of_them(maker: Any, bucket: str, size: int) -> None:
    content = b"x" * size
    put = maker.put_object(Bucket=bucket, Key="k", Body=content, Metadata={"a": "1"}, ContentType="text/plain", Tagging="t=1")
    told = maker.copy_object(Bucket=bucket, Key="to/here", CopySource=source(bucket))
    assert told["CopyObjectResult"]["ETag"] == put["ETag"]
    got = maker.get_object(Bucket=bucket, Key="to/here")
    assert (got["Body"].read(), got["Metadata"], got["ContentType"], got["TagCount"]) == (content, {"a": "1"}, "text/plain", 1)


def test_a_copy_into_another_bucket_is_the_same_object(shop: Shop, maker: Any, bucket: str) -> None:
    other = shop.bucket(maker)
    maker.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"a": "1"})
    maker.copy_object(Bucket=other, Key="k", CopySource=source(bucket))
    assert (body(maker, other, "k"), maker.head_object(Bucket=other, Key="k")["Metadata"]) == (b"x", {"a": "1"})


def test_a_copy_of_a_file_of_another_door_gets_its_md5(shop: Shop, maker: Any, bucket: str) -> None:
    workspace_of(shop, bucket).publish(1, b"made", 0o644, io.BytesIO(b"by hand"))
    told = maker.copy_object(Bucket=bucket, Key="copy", CopySource=source(bucket, "made"))
    assert told["CopyObjectResult"]["ETag"] == f'"{hashlib.md5(b"by hand").hexdigest()}"'


def test_the_request_can_replace_metadata_and_tags(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"a": "1"}, Tagging="t=1")
    maker.copy_object(
        Bucket=bucket,
        Key="k",
        CopySource=source(bucket),
        MetadataDirective="REPLACE",
        Metadata={"b": "2"},
        TaggingDirective="REPLACE",
        Tagging="u=2",
    )
    assert maker.head_object(Bucket=bucket, Key="k")["Metadata"] == {"b": "2"}
    assert maker.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == [{"Key": "u", "Value": "2"}]


def test_a_copy_to_itself_that_changes_nothing_is_refused(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert code_of(maker.copy_object, Bucket=bucket, Key="k", CopySource=source(bucket)) == "InvalidRequest"


def test_a_copy_is_judged_by_its_source_and_by_its_target(maker: Any, bucket: str) -> None:
    etag = maker.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    stale = {"Bucket": bucket, "Key": "to", "CopySource": source(bucket), "CopySourceIfNoneMatch": etag}
    assert code_of(maker.copy_object, **stale) == "PreconditionFailed"
    taken = {"Bucket": bucket, "Key": "k", "CopySource": source(bucket), "MetadataDirective": "REPLACE", "IfNoneMatch": "*"}
    assert code_of(maker.copy_object, **taken) == "PreconditionFailed"


def test_what_is_not_there_cannot_be_copied(maker: Any, bucket: str) -> None:
    assert code_of(maker.copy_object, Bucket=bucket, Key="k", CopySource=source(bucket, "never")) == "NoSuchKey"
    assert code_of(maker.copy_object, Bucket=bucket, Key="k", CopySource=source("never-made")) == "NoSuchBucket"


def test_a_version_can_be_copied(maker: Any, bucket: str) -> None:
    maker.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = maker.put_object(Bucket=bucket, Key="k", Body=b"one", Metadata={"a": "1"})["VersionId"]
    maker.put_object(Bucket=bucket, Key="k", Body=b"two")
    told = maker.copy_object(Bucket=bucket, Key="k", CopySource=source(bucket, VersionId=version))
    assert told["CopySourceVersionId"] == version
    assert told["VersionId"] != version
    assert (body(maker, bucket, "k"), maker.head_object(Bucket=bucket, Key="k")["Metadata"]) == (b"one", {"a": "1"})


def test_parts_are_copied_from_ranges_of_objects(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    upload = maker.create_multipart_upload(Bucket=bucket, Key="to")["UploadId"]
    part = {"Bucket": bucket, "Key": "to", "UploadId": upload, "PartNumber": 1, "CopySource": source(bucket)}
    told = maker.upload_part_copy(**part, CopySourceRange="bytes=2-5")["CopyPartResult"]
    assert told["ETag"] == f'"{hashlib.md5(b"2345").hexdigest()}"'
    assert code_of(maker.upload_part_copy, **part, CopySourceRange="bytes=2-99") == "InvalidRange"
    parts = {"Parts": [{"PartNumber": 1, "ETag": told["ETag"]}]}
    maker.complete_multipart_upload(Bucket=bucket, Key="to", UploadId=upload, MultipartUpload=parts)
    assert body(maker, bucket, "to") == b"2345"
