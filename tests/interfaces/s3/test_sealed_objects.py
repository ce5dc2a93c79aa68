"""Objects under a client's key: whole, in ranges, in parts, copied; and nothing of them in the tree."""

from __future__ import annotations

import os
from typing import Any

import pytest
from botocore.exceptions import ClientError

from store.model import ROOT, Access
from tests.interfaces.s3.conftest import Shop

KEY = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32}
OTHER = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "o" * 32}
SOURCE = {f"CopySource{name}": value for name, value in KEY.items()}
DATA = os.urandom(200_000)


@pytest.fixture(scope="module")
def client(maker: Any) -> Any:
    return maker


@pytest.fixture(scope="module")
def bucket(shop: Shop, client: Any) -> str:
    name = shop.bucket(client)
    client.put_object(Bucket=name, Key="sealed", Body=DATA, Metadata={"a": "b"}, ChecksumAlgorithm="SHA256", **KEY)
    return name


def body(client: Any, bucket: str, key: str, **more: Any) -> bytes:
    data: bytes = client.get_object(Bucket=bucket, Key=key, **more)["Body"].read()
    return data


def test_the_key_opens_the_whole_and_every_range(client: Any, bucket: str) -> None:
    assert body(client, bucket, "sealed", **KEY) == DATA
    for first, last in ((0, 0), (15, 16), (17, 70_001), (199_999, 199_999)):
        assert body(client, bucket, "sealed", Range=f"bytes={first}-{last}", **KEY) == DATA[first : last + 1]
    seen = client.head_object(Bucket=bucket, Key="sealed", ChecksumMode="ENABLED", **KEY)
    assert (seen["ContentLength"], seen["Metadata"], seen["SSECustomerAlgorithm"]) == (len(DATA), {"a": "b"}, "AES256")


@pytest.mark.parametrize("key", [{}, OTHER])
def test_without_the_key_nothing_is_told(client: Any, bucket: str, key: dict[str, str]) -> None:
    for call in (client.get_object, client.head_object):
        with pytest.raises(ClientError, match=r"InvalidRequest|Bad Request"):
            call(Bucket=bucket, Key="sealed", **key)
    with pytest.raises(ClientError, match="encryption parameters are not applicable"):
        client.put_object(Bucket=bucket, Key="plain", Body=b"plain")
        client.get_object(Bucket=bucket, Key="plain", **KEY)


def test_the_tree_holds_ciphertext_only(shop: Shop, client: Any, bucket: str) -> None:
    desk = shop.house.house.desk
    run = desk.runs.of_bucket(bucket)
    assert run is not None
    working = desk.appliance.engine.working(run.branch)
    try:
        entries = dict(working.list(ROOT))
        node = entries[b"sealed"].node
        handle = working.open(node, Access())
        stored = handle.read(0, len(DATA))
        handle.close()
        kept = b"".join(working.xattrs(node).values())
    finally:
        working.close()
    assert len(stored) == len(DATA)
    assert stored != DATA
    assert KEY["SSECustomerKey"].encode() not in kept


def test_parts_are_sealed_one_by_one_and_read_as_one(client: Any, bucket: str) -> None:
    parts = [os.urandom(5 << 20), os.urandom(1000)]
    upload = client.create_multipart_upload(Bucket=bucket, Key="parts", **KEY)["UploadId"]
    with pytest.raises(ClientError, match="did not match"):
        client.upload_part(Bucket=bucket, Key="parts", UploadId=upload, PartNumber=1, Body=b"x", **OTHER)
    named = [
        {"PartNumber": n, "ETag": client.upload_part(Bucket=bucket, Key="parts", UploadId=upload, PartNumber=n, Body=part, **KEY)["ETag"]}
        for n, part in enumerate(parts, 1)
    ]
    with pytest.raises(ClientError, match="correct parameters"):
        client.complete_multipart_upload(Bucket=bucket, Key="parts", UploadId=upload, MultipartUpload={"Parts": named})
    client.complete_multipart_upload(Bucket=bucket, Key="parts", UploadId=upload, MultipartUpload={"Parts": named}, **KEY)
    whole = b"".join(parts)
    assert body(client, bucket, "parts", **KEY) == whole
    edge = 5 << 20
    assert body(client, bucket, "parts", Range=f"bytes={edge - 7}-{edge + 7}", **KEY) == whole[edge - 7 : edge + 8]
    assert body(client, bucket, "parts", PartNumber=2, **KEY) == parts[1]


@pytest.mark.parametrize("target", [{}, KEY, OTHER])
def test_a_copy_is_opened_with_one_key_and_sealed_with_another(client: Any, bucket: str, target: dict[str, str]) -> None:
    source = {"Bucket": bucket, "Key": "sealed"}
    with pytest.raises(ClientError, match="correct parameters"):
        client.copy_object(Bucket=bucket, Key="copy", CopySource=source, **target)
    client.copy_object(Bucket=bucket, Key="copy", CopySource=source, **SOURCE, **target)
    assert body(client, bucket, "copy", **target) == DATA


def test_a_part_may_be_a_copy_of_a_range(client: Any, bucket: str) -> None:
    upload = client.create_multipart_upload(Bucket=bucket, Key="ranged", **OTHER)["UploadId"]
    part = client.upload_part_copy(
        Bucket=bucket, Key="ranged", UploadId=upload, PartNumber=1, CopySource={"Bucket": bucket, "Key": "sealed"},
        CopySourceRange="bytes=5-99", **SOURCE, **OTHER,
    )  # fmt: skip
    named = {"Parts": [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]}
    client.complete_multipart_upload(Bucket=bucket, Key="ranged", UploadId=upload, MultipartUpload=named, **OTHER)
    assert body(client, bucket, "ranged", **OTHER) == DATA[5:100]


def test_versions_are_sealed_like_the_objects_they_were(shop: Shop, client: Any) -> None:
    bucket = shop.bucket(client)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = client.put_object(Bucket=bucket, Key="a", Body=b"first", **KEY)["VersionId"]
    client.put_object(Bucket=bucket, Key="a", Body=b"second", **OTHER)
    assert body(client, bucket, "a", VersionId=first, **KEY) == b"first"
    with pytest.raises(ClientError, match="did not match"):
        client.get_object(Bucket=bucket, Key="a", VersionId=first, **OTHER)
