"""Versions: entries over commits of the branch."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.interfaces.s3.conftest import Shop
from tests.interfaces.s3.test_objects import body, code_of, workspace_of


@pytest.fixture
def kept(maker: Any, bucket: str) -> str:
    """Return a bucket that keeps versions."""
    maker.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return bucket


def put(client: Any, bucket: str, content: bytes, key: str = "k") -> str:
    return str(client.put_object(Bucket=bucket, Key=key, Body=content).get("VersionId", "null"))


def listed(client: Any, bucket: str, **arguments: Any) -> list[tuple[str, str, bool, bool]]:
    """Return key, version, whether it is the latest and whether it is a marker, of every version."""
    told = client.list_object_versions(Bucket=bucket, **arguments)
    lines = [(each, False) for each in told.get("Versions", [])] + [(each, True) for each in told.get("DeleteMarkers", [])]
    return [(each["Key"], each["VersionId"], each["IsLatest"], marker) for each, marker in lines]


def test_each_put_is_a_version_that_can_be_read(maker: Any, kept: str) -> None:
    versions = [put(maker, kept, content) for content in (b"one", b"two", b"three")]
    assert len(set(versions)) == 3
    assert [body(maker, kept, "k", VersionId=version) for version in versions] == [b"one", b"two", b"three"]
    assert listed(maker, kept) == [("k", version, version == versions[-1], False) for version in reversed(versions)]


def test_each_put_is_a_commit_of_the_branch(shop: Shop, maker: Any, kept: str) -> None:
    put(maker, kept, b"one")
    put(maker, kept, b"two")
    branch = workspace_of(shop, kept).branch
    messages = [each["message"] for each in shop.house.call(shop.house.owner, "history.log", {"branch": branch, "path": "k"})["items"]]
    assert messages == ["s3: put k", "s3: put k"]


def test_an_older_version_keeps_its_metadata_and_tags(maker: Any, kept: str) -> None:
    first = maker.put_object(Bucket=kept, Key="k", Body=b"one", Metadata={"a": "1"}, Tagging="t=1")
    put(maker, kept, b"two")
    got = maker.head_object(Bucket=kept, Key="k", VersionId=first["VersionId"])
    assert (got["Metadata"], got["ETag"], got["TagCount"]) == ({"a": "1"}, first["ETag"], 1)


def test_a_delete_is_a_marker_and_taking_it_away_brings_the_object_back(maker: Any, kept: str) -> None:
    version = put(maker, kept, b"one")
    marker = maker.delete_object(Bucket=kept, Key="k")
    assert marker["DeleteMarker"] is True
    assert code_of(maker.get_object, Bucket=kept, Key="k") == "NoSuchKey"
    assert code_of(maker.get_object, Bucket=kept, Key="k", VersionId=marker["VersionId"]) == "MethodNotAllowed"
    assert body(maker, kept, "k", VersionId=version) == b"one"
    maker.delete_object(Bucket=kept, Key="k", VersionId=marker["VersionId"])
    assert body(maker, kept, "k") == b"one"
    assert maker.head_object(Bucket=kept, Key="k")["VersionId"] == version


def test_deleting_the_newest_version_uncovers_the_one_before(maker: Any, kept: str) -> None:
    first = maker.put_object(Bucket=kept, Key="k", Body=b"one", Metadata={"a": "1"})
    second = put(maker, kept, b"two")
    maker.delete_object(Bucket=kept, Key="k", VersionId=second)
    got = maker.get_object(Bucket=kept, Key="k")
    assert (got["Body"].read(), got["VersionId"], got["Metadata"]) == (b"one", first["VersionId"], {"a": "1"})
    assert code_of(maker.get_object, Bucket=kept, Key="k", VersionId=second) == "NoSuchVersion"


def test_when_every_version_is_gone_so_is_the_bucket(maker: Any, kept: str) -> None:
    put(maker, kept, b"one", "a/b")
    put(maker, kept, b"two", "a/b")
    maker.delete_object(Bucket=kept, Key="a/b")
    assert code_of(maker.delete_bucket, Bucket=kept) == "BucketNotEmpty"
    for key, version, _, _ in listed(maker, kept):
        maker.delete_object(Bucket=kept, Key=key, VersionId=version)
    assert listed(maker, kept) == []
    maker.delete_bucket(Bucket=kept)


def test_what_was_there_before_versioning_is_the_null_version(maker: Any, bucket: str) -> None:
    put(maker, bucket, b"before")
    maker.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    assert listed(maker, bucket) == [("k", "null", True, False)]
    version = put(maker, bucket, b"after")
    assert listed(maker, bucket) == [("k", version, True, False), ("k", "null", False, False)]
    assert body(maker, bucket, "k", VersionId="null") == b"before"


def test_a_suspended_bucket_replaces_its_null_version_and_keeps_the_others(maker: Any, kept: str) -> None:
    version = put(maker, kept, b"one")
    maker.put_bucket_versioning(Bucket=kept, VersioningConfiguration={"Status": "Suspended"})
    put(maker, kept, b"two")
    put(maker, kept, b"three")
    assert listed(maker, kept) == [("k", "null", True, False), ("k", version, False, False)]
    assert body(maker, kept, "k", VersionId="null") == b"three"
    maker.put_bucket_versioning(Bucket=kept, VersioningConfiguration={"Status": "Enabled"})
    put(maker, kept, b"four")
    assert body(maker, kept, "k", VersionId="null") == b"three"


def test_what_another_door_wrote_becomes_a_version_before_it_is_replaced(shop: Shop, maker: Any, kept: str) -> None:
    put(maker, kept, b"one")
    workspace_of(shop, kept).publish(1, b"k", 0o644, io.BytesIO(b"by hand"))
    put(maker, kept, b"two")
    versions = [version for _, version, _, _ in listed(maker, kept)]
    assert [body(maker, kept, "k", VersionId=version) for version in versions] == [b"two", b"by hand", b"one"]


def test_writers_of_one_key_each_get_a_version_with_their_bytes(maker: Any, kept: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        written = list(pool.map(lambda number: (put(maker, kept, str(number).encode()), str(number).encode()), range(12)))
    assert {version: body(maker, kept, "k", VersionId=version) for version, _ in written} == dict(written)
    assert len(listed(maker, kept)) == 12


def test_versions_are_listed_in_pages(maker: Any, kept: str) -> None:
    expected = [(key, put(maker, kept, b"x", key)) for key in ("a", "a", "b/c", "b/c", "b/c", "d")]
    found: list[tuple[str, str]] = []
    arguments: dict[str, Any] = {}
    while True:
        told = maker.list_object_versions(Bucket=kept, MaxKeys=1, **arguments)
        found += [(each["Key"], each["VersionId"]) for each in told.get("Versions", [])]
        if not told["IsTruncated"]:
            break
        arguments = {"KeyMarker": told["NextKeyMarker"], "VersionIdMarker": told["NextVersionIdMarker"]}
    assert sorted(found) == sorted(expected)
    assert [key for key, _ in found] == ["a", "a", "b/c", "b/c", "b/c", "d"]
    assert [each["Prefix"] for each in maker.list_object_versions(Bucket=kept, Delimiter="/")["CommonPrefixes"]] == ["b/"]


def test_many_are_deleted_as_markers_and_as_versions(maker: Any, kept: str) -> None:
    versions = {key: put(maker, kept, b"x", key) for key in ("a", "b")}
    told = maker.delete_objects(Bucket=kept, Delete={"Objects": [{"Key": "a"}, {"Key": "b", "VersionId": versions["b"]}]})["Deleted"]
    assert [each.get("DeleteMarker") for each in told] == [True, None]
    assert [key for key, _, _, _ in listed(maker, kept)] == ["a", "a"]


def test_a_conditional_delete_of_what_never_was_leaves_no_marker(maker: Any, bucket: str) -> None:
    maker.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for tag in ("*", "stale"):
        assert "DeleteMarker" not in maker.delete_object(Bucket=bucket, Key="never", IfMatch=tag)
    assert "DeleteMarkers" not in maker.list_object_versions(Bucket=bucket)
    maker.put_object(Bucket=bucket, Key="a", Body=b"x")
    maker.delete_object(Bucket=bucket, Key="a", IfMatch="*")
    assert maker.delete_object(Bucket=bucket, Key="a", IfMatch="*")["DeleteMarker"]
    with pytest.raises(ClientError, match="PreconditionFailed"):
        maker.delete_object(Bucket=bucket, Key="a", IfMatch="stale")
