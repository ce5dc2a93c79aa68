"""Uploads in parts: any order, any worker, one object."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest

from interfaces.s3 import S3Door
from interfaces.s3.uploads import LIFETIME
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from tests.interfaces.s3.conftest import Shop
from tests.interfaces.s3.test_objects import MIB, body, code_of, workspace_of
from tests.serving import serving

PIECES = [random.Random(number).randbytes(5 * MIB) for number in range(2)] + [b"last"]


def begin(client: Any, bucket: str, key: str = "k", **arguments: Any) -> str:
    return str(client.create_multipart_upload(Bucket=bucket, Key=key, **arguments)["UploadId"])


def send(client: Any, bucket: str, upload: str, number: int, content: bytes, key: str = "k", **arguments: Any) -> dict[str, Any]:
    told = client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=content, **arguments)
    return {"PartNumber": number, "ETag": told["ETag"]}


def complete(client: Any, bucket: str, upload: str, parts: list[dict[str, Any]], key: str = "k", **arguments: Any) -> dict[str, Any]:
    told: dict[str, Any] = client.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}, **arguments
    )
    return told


def staged(shop: Shop, bucket: str) -> list[str]:
    """Return the notes of parts that wait in a bucket."""
    return list(shop.house.control.notes("s3").keys(f"part/{workspace_of(shop, bucket).branch}/"))


def test_parts_sent_in_any_order_are_one_object(shop: Shop, maker: Any, bucket: str) -> None:
    upload = begin(maker, bucket, ContentType="text/plain", Metadata={"a": "1"}, Tagging="t=1")
    parts = [send(maker, bucket, upload, number, PIECES[number - 1]) for number in (3, 1, 2)]
    told = complete(maker, bucket, upload, sorted(parts, key=lambda part: part["PartNumber"]))
    md5 = hashlib.md5(b"".join(hashlib.md5(piece).digest() for piece in PIECES)).hexdigest()
    assert told["ETag"] == f'"{md5}-3"'
    got = maker.get_object(Bucket=bucket, Key="k")
    assert (got["Body"].read(), got["ContentType"], got["Metadata"], got["TagCount"]) == (b"".join(PIECES), "text/plain", {"a": "1"}, 1)
    assert body(maker, bucket, "k", PartNumber=3) == b"last"
    assert maker.head_object(Bucket=bucket, Key="k", PartNumber=1)["PartsCount"] == 3
    assert staged(shop, bucket) == []


def test_a_part_sent_again_replaces_the_former(maker: Any, bucket: str) -> None:
    upload = begin(maker, bucket)
    stale = send(maker, bucket, upload, 1, b"former")
    fresh = send(maker, bucket, upload, 1, b"latter")
    assert (
        code_of(maker.complete_multipart_upload, Bucket=bucket, Key="k", UploadId=upload, MultipartUpload={"Parts": [stale]})
        == "InvalidPart"
    )
    complete(maker, bucket, upload, [fresh])
    assert body(maker, bucket, "k") == b"latter"


def test_completing_again_says_the_same(maker: Any, bucket: str) -> None:
    upload = begin(maker, bucket)
    parts = [send(maker, bucket, upload, 1, b"x")]
    assert complete(maker, bucket, upload, parts)["ETag"] == complete(maker, bucket, upload, parts)["ETag"]


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([{"PartNumber": 1, "ETag": '"0"'}], "InvalidPart"),
        ([{"PartNumber": 9, "ETag": '"0"'}], "InvalidPart"),
        ([{"PartNumber": 2, "ETag": '"0"'}, {"PartNumber": 1, "ETag": '"0"'}], "InvalidPartOrder"),
    ],
)
def test_a_completion_that_names_other_parts_is_refused(maker: Any, bucket: str, parts: list[dict[str, Any]], code: str) -> None:
    upload = begin(maker, bucket)
    send(maker, bucket, upload, 1, b"x")
    assert code_of(maker.complete_multipart_upload, Bucket=bucket, Key="k", UploadId=upload, MultipartUpload={"Parts": parts}) == code
    assert code_of(maker.get_object, Bucket=bucket, Key="k") == "NoSuchKey"


def test_a_part_before_the_last_is_not_small(maker: Any, bucket: str) -> None:
    upload = begin(maker, bucket)
    parts = [send(maker, bucket, upload, number, b"small") for number in (1, 2)]
    told = code_of(maker.complete_multipart_upload, Bucket=bucket, Key="k", UploadId=upload, MultipartUpload={"Parts": parts})
    assert told == "EntityTooSmall"


def test_an_aborted_upload_leaves_nothing(shop: Shop, maker: Any, bucket: str) -> None:
    upload = begin(maker, bucket)
    send(maker, bucket, upload, 1, b"x")
    maker.abort_multipart_upload(Bucket=bucket, Key="k", UploadId=upload)
    assert staged(shop, bucket) == []
    assert code_of(maker.list_parts, Bucket=bucket, Key="k", UploadId=upload) == "NoSuchUpload"
    assert code_of(maker.abort_multipart_upload, Bucket=bucket, Key="k", UploadId=upload) == "NoSuchUpload"


def test_uploads_and_parts_are_listed_in_pages(maker: Any, bucket: str) -> None:
    uploads = [begin(maker, bucket, key) for key in ("b", "a", "a")]
    first = maker.list_multipart_uploads(Bucket=bucket, MaxUploads=2)
    assert [(each["Key"], each["UploadId"]) for each in first["Uploads"]] == [("a", uploads[1]), ("a", uploads[2])]
    rest = maker.list_multipart_uploads(Bucket=bucket, KeyMarker=first["NextKeyMarker"], UploadIdMarker=first["NextUploadIdMarker"])
    assert [each["UploadId"] for each in rest["Uploads"]] == [uploads[0]]
    for number in (1, 2, 3):
        send(maker, bucket, uploads[0], number, b"x" * number, "b")
    told = maker.list_parts(Bucket=bucket, Key="b", UploadId=uploads[0], MaxParts=2)
    assert [(each["PartNumber"], each["Size"]) for each in told["Parts"]] == [(1, 1), (2, 2)]
    told = maker.list_parts(Bucket=bucket, Key="b", UploadId=uploads[0], PartNumberMarker=told["NextPartNumberMarker"])
    assert [(each["PartNumber"], each["Size"]) for each in told["Parts"]] == [(3, 3)]


def test_a_completion_is_judged_by_its_condition(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"there")
    upload = begin(maker, bucket)
    parts = [send(maker, bucket, upload, 1, b"x")]
    refused = {"Bucket": bucket, "Key": "k", "UploadId": upload, "MultipartUpload": {"Parts": parts}, "IfNoneMatch": "*"}
    assert code_of(maker.complete_multipart_upload, **refused) == "PreconditionFailed"
    assert body(maker, bucket, "k") == b"there"
    complete(maker, bucket, upload, parts)
    assert body(maker, bucket, "k") == b"x"


@pytest.mark.parametrize(("algorithm", "kind"), [("CRC32", "FULL_OBJECT"), ("CRC64NVME", "FULL_OBJECT"), ("SHA256", "COMPOSITE")])
def test_the_checksum_of_the_whole_is_kept(maker: Any, bucket: str, algorithm: str, kind: str) -> None:
    upload = begin(maker, bucket, ChecksumAlgorithm=algorithm, ChecksumType=kind)
    name = f"Checksum{algorithm}"
    parts = []
    for number, piece in enumerate(PIECES, 1):
        told = maker.upload_part(Bucket=bucket, Key="k", UploadId=upload, PartNumber=number, Body=piece, ChecksumAlgorithm=algorithm)
        parts.append({"PartNumber": number, "ETag": told["ETag"], name: told[name]})
    told = complete(maker, bucket, upload, parts)
    whole = maker.put_object(Bucket=bucket, Key="whole", Body=b"".join(PIECES), ChecksumAlgorithm=algorithm)
    assert (told[name] == whole[name]) == (kind == "FULL_OBJECT")
    assert maker.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")[name] == told[name]


def test_another_worker_goes_on_with_an_upload(shop: Shop, maker: Any, bucket: str) -> None:
    pool = Pool("other", 4, 4)
    try:
        with serving(S3Door(shop.house.control, pool=pool, limits=Limits())) as url:
            other = Shop(shop.house, url).of_principal("maker")
            upload = begin(maker, bucket)
            complete(maker, bucket, upload, [send(other, bucket, upload, 1, b"there")])
    finally:
        pool.close()
    assert body(maker, bucket, "k") == b"there"


def test_an_upload_of_a_week_ago_is_none(shop: Shop, maker: Any, bucket: str) -> None:
    upload = begin(maker, bucket)
    send(maker, bucket, upload, 1, b"x")
    notes = shop.house.control.notes("s3")
    key = next(key for key in notes.keys("upload/") if key.endswith(upload))
    version, told = notes.find(key)
    assert notes.put(key, told | {"created": told["created"] - LIFETIME * 10**9}, version)
    assert code_of(maker.list_parts, Bucket=bucket, Key="k", UploadId=upload) == "NoSuchUpload"
    assert staged(shop, bucket) == []
    assert maker.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
