"""Objects through the wire: what is put is what is got, and every other door sees a file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from tests.interfaces.s3.conftest import Shop

MIB = 1 << 20


def code_of(call: Callable[..., Any], **arguments: Any) -> str:
    """Return the error code of a call that has to fail."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value.response["Error"]["Code"])


def body(client: Any, bucket: str, key: str, **arguments: Any) -> bytes:
    return bytes(client.get_object(Bucket=bucket, Key=key, **arguments)["Body"].read())


def workspace_of(shop: Shop, bucket: str) -> Any:
    caller = shop.house.control.authenticate(shop.house.issue_token("maker", "service"))
    return shop.house.control.workspace(caller, bucket)


@pytest.mark.parametrize("size", [0, 1, 4096, 65_536, 65_537, 3 * MIB + 1])
def test_an_object_comes_back_as_it_was_put(maker: Any, bucket: str, size: int) -> None:
    content = hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1)
    content = content[:size]
    told = maker.put_object(Bucket=bucket, Key="a/b", Body=content)
    assert told["ETag"] == f'"{hashlib.md5(content).hexdigest()}"'
    got = maker.get_object(Bucket=bucket, Key="a/b")
    assert got["Body"].read() == content
    assert (got["ETag"], got["ContentLength"], got["ContentType"]) == (told["ETag"], size, "binary/octet-stream")


def test_headers_metadata_and_tags_are_kept_with_the_object(maker: Any, bucket: str) -> None:
    headers = {
        "ContentType": "text/x-test",
        "CacheControl": "max-age=3",
        "ContentDisposition": "inline",
        "ContentEncoding": "br",
        "ContentLanguage": "fr",
    }
    maker.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"one": "1", "empty": ""}, Tagging="a=1&b=2", **headers)
    got = maker.head_object(Bucket=bucket, Key="k")
    assert {name: got[name] for name in headers} == headers
    assert got["Metadata"] == {"one": "1", "empty": ""}
    assert got["TagCount"] == 2
    assert maker.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]


def test_an_object_put_again_has_nothing_of_the_former(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"one", Metadata={"a": "1"}, Tagging="t=1", ContentType="text/plain")
    maker.put_object(Bucket=bucket, Key="k", Body=b"one")
    got = maker.head_object(Bucket=bucket, Key="k")
    assert (got["Metadata"], got["ContentType"], got.get("TagCount")) == ({}, "binary/octet-stream", None)


def test_a_file_of_another_door_is_an_object_whose_tag_is_no_md5(shop: Shop, maker: Any, bucket: str) -> None:
    workspace = workspace_of(shop, bucket)
    workspace.publish(1, b"made", 0o644, io.BytesIO(b"by hand"))
    first = maker.head_object(Bucket=bucket, Key="made")["ETag"]
    assert "-" in first
    assert maker.head_object(Bucket=bucket, Key="made")["ETag"] == first
    workspace.publish(1, b"made", 0o644, io.BytesIO(b"changed"))
    assert maker.head_object(Bucket=bucket, Key="made")["ETag"] != first
    assert body(maker, bucket, "made") == b"changed"


def test_what_another_door_changed_loses_what_s3_knew_of_it(shop: Shop, maker: Any, bucket: str) -> None:
    told = maker.put_object(Bucket=bucket, Key="k", Body=b"mine", Metadata={"a": "1"}, Tagging="t=1")
    workspace = workspace_of(shop, bucket)
    workspace.publish(1, b"k", 0o644, io.BytesIO(b"theirs"))
    got = maker.head_object(Bucket=bucket, Key="k")
    assert got["ETag"] != told["ETag"]
    assert got["Metadata"] == {}
    assert maker.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == []


def test_a_range_is_the_bytes_it_names(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    got = maker.get_object(Bucket=bucket, Key="k", Range="bytes=2-4")
    assert (got["Body"].read(), got["ContentRange"], got["ResponseMetadata"]["HTTPStatusCode"]) == (b"234", "bytes 2-4/10", 206)
    assert code_of(maker.get_object, Bucket=bucket, Key="k", Range="bytes=10-") == "InvalidRange"


def test_an_answer_says_of_the_content_what_the_query_asks_for(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    got = maker.get_object(Bucket=bucket, Key="k", ResponseContentType="text/x-asked", ResponseCacheControl="no-store")
    assert (got["ContentType"], got["CacheControl"]) == ("text/x-asked", "no-store")


@pytest.mark.parametrize("prefix", ["a", "a/b"])
def test_an_object_and_those_below_it_live_together(maker: Any, bucket: str, prefix: str) -> None:
    keys = [prefix, f"{prefix}/c", f"{prefix}/", f"{prefix}//c"]
    for key in keys:
        maker.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert [body(maker, bucket, key) for key in keys] == [key.encode() for key in keys]
    assert [each["Key"] for each in maker.list_objects_v2(Bucket=bucket)["Contents"]] == sorted(keys)


def test_an_object_in_the_way_of_a_directory_is_moved_beside_it_and_never_lost(maker: Any, bucket: str) -> None:
    first = maker.put_object(Bucket=bucket, Key="a", Body=b"file", Metadata={"m": "1"})
    maker.put_object(Bucket=bucket, Key="a/b", Body=b"below")
    got = maker.get_object(Bucket=bucket, Key="a")
    assert (got["Body"].read(), got["ETag"], got["Metadata"]) == (b"file", first["ETag"], {"m": "1"})
    maker.put_object(Bucket=bucket, Key="a", Body=b"again")
    assert body(maker, bucket, "a") == b"again"
    maker.delete_object(Bucket=bucket, Key="a/b")
    assert body(maker, bucket, "a") == b"again"


def test_a_symlink_is_no_object_and_is_not_written_through(shop: Shop, maker: Any, bucket: str) -> None:
    workspace = workspace_of(shop, bucket)
    workspace.symlink(1, b"link", b"elsewhere")
    assert code_of(maker.get_object, Bucket=bucket, Key="link") == "NoSuchKey"
    assert code_of(maker.put_object, Bucket=bucket, Key="link", Body=b"x") == "InvalidRequest"
    assert code_of(maker.put_object, Bucket=bucket, Key="link/x", Body=b"x") == "InvalidRequest"
    assert workspace.readlink(workspace.lookup(1, b"link").node) == b"elsewhere"


def test_a_directory_marker_is_the_directory(shop: Shop, maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="dir/", Body=b"", ContentType="application/x-directory")
    assert maker.head_object(Bucket=bucket, Key="dir/")["ContentType"] == "application/x-directory"
    assert workspace_of(shop, bucket).lookup(1, b"dir").links
    assert [each["Key"] for each in maker.list_objects_v2(Bucket=bucket)["Contents"]] == ["dir/"]
    maker.delete_object(Bucket=bucket, Key="dir/")
    assert maker.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_marker_goes_and_what_is_below_it_stays(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="dir/", Body=b"")
    maker.put_object(Bucket=bucket, Key="dir/x", Body=b"x")
    maker.delete_object(Bucket=bucket, Key="dir/")
    assert [each["Key"] for each in maker.list_objects_v2(Bucket=bucket)["Contents"]] == ["dir/x"]
    maker.delete_object(Bucket=bucket, Key="dir/x")
    assert maker.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_of_many_that_want_no_object_one_puts_it(maker: Any, bucket: str) -> None:
    def put(number: int) -> bool:
        try:
            maker.put_object(Bucket=bucket, Key="one", Body=str(number).encode(), IfNoneMatch="*")
        except ClientError as error:
            assert error.response["Error"]["Code"] in {"PreconditionFailed", "ConditionalRequestConflict"}
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put, range(16))) == 1


def test_a_stale_tag_stops_a_put_and_a_delete(maker: Any, bucket: str) -> None:
    stale = maker.put_object(Bucket=bucket, Key="k", Body=b"one")["ETag"]
    fresh = maker.put_object(Bucket=bucket, Key="k", Body=b"two")["ETag"]
    assert code_of(maker.put_object, Bucket=bucket, Key="k", Body=b"three", IfMatch=stale) == "PreconditionFailed"
    assert code_of(maker.delete_object, Bucket=bucket, Key="k", IfMatch=stale) == "PreconditionFailed"
    maker.put_object(Bucket=bucket, Key="k", Body=b"three", IfMatch=fresh)
    assert body(maker, bucket, "k") == b"three"


def test_a_thousand_objects_go_at_once_and_take_their_directories_along(shop: Shop, maker: Any, bucket: str) -> None:
    keys = [f"d{number % 7}/e/k{number:04d}" for number in range(1000)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: maker.put_object(Bucket=bucket, Key=key, Body=b""), keys))
    told = maker.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in [*keys[:999], "never"]]})
    assert len(told["Deleted"]) == 1000
    assert [each["Key"] for each in maker.list_objects_v2(Bucket=bucket)["Contents"]] == keys[999:]
    assert [name for name, _ in workspace_of(shop, bucket).list(1)] == [keys[999].encode()[:2]]


@pytest.mark.parametrize("key", ["x" * 1025, "a/" * 600])
def test_a_key_that_is_too_long_is_refused(maker: Any, bucket: str, key: str) -> None:
    assert code_of(maker.put_object, Bucket=bucket, Key=key, Body=b"x") == "KeyTooLongError"


def test_what_the_door_cannot_do_is_refused_and_not_ignored(maker: Any, bucket: str) -> None:
    assert code_of(maker.put_object, Bucket=bucket, Key="k", Body=b"x", StorageClass="GLACIER") == "InvalidStorageClass"
    assert code_of(maker.put_object, Bucket=bucket, Key="k", Body=b"x", ObjectLockLegalHoldStatus="ON") == "NotImplemented"
    assert code_of(maker.restore_object, Bucket=bucket, Key="k", RestoreRequest={"Days": 1}) == "NotImplemented"
    assert code_of(maker.get_object, Bucket=bucket, Key="k") == "NoSuchKey"


def test_a_bucket_in_the_host_is_the_bucket_in_the_path(shop: Shop, maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    port = shop.url.rpartition(":")[2]
    virtual = Shop(shop.house, f"http://localhost:{port}").of_principal(
        "maker", signature_version="s3v4", s3={"addressing_style": "virtual"}
    )
    address = urlsplit(virtual.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "k"}))
    assert address.netloc == f"{bucket}.localhost:{port}"
    # Not every resolver knows names below localhost.
    connection = HTTPConnection("127.0.0.1", int(port))
    connection.request("GET", f"{address.path}?{address.query}", headers={"host": address.netloc})
    with closing(connection):
        got = connection.getresponse().read()
        assert got == b"x", got


@pytest.mark.parametrize("versioned", [False, True])
def test_an_object_is_deleted_while_it_is_what_the_request_says(maker: Any, bucket: str, versioned: bool) -> None:
    if versioned:
        maker.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    etag = maker.put_object(Bucket=bucket, Key="k", Body=b"1234")["ETag"]
    modified = maker.head_object(Bucket=bucket, Key="k")["LastModified"]
    for wrong in ({"IfMatchSize": 5}, {"IfMatchLastModifiedTime": modified.replace(year=2015)}, {"IfMatch": '"0"'}):
        assert code_of(maker.delete_object, Bucket=bucket, Key="k", **wrong) == "PreconditionFailed"
    told = maker.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", "Size": 5}]})
    assert [each["Code"] for each in told["Errors"]] == ["PreconditionFailed"]
    maker.delete_object(Bucket=bucket, Key="k", IfMatch=etag, IfMatchSize=4, IfMatchLastModifiedTime=modified)
    assert code_of(maker.get_object, Bucket=bucket, Key="k") == "NoSuchKey"


def test_what_two_writers_left_of_one_object_goes_with_it_and_never_comes_back(shop: Shop, maker: Any, bucket: str) -> None:
    workspace = workspace_of(shop, bucket)
    for name in (b"a", b"s3~file~a"):
        workspace.publish(1, name, 0o644, io.BytesIO(name))
    assert [each["Key"] for each in maker.list_objects_v2(Bucket=bucket)["Contents"]] == ["a"]
    assert body(maker, bucket, "a") == b"a"
    maker.put_object(Bucket=bucket, Key="a/b", Body=b"below")
    assert body(maker, bucket, "a") == b"a"
    maker.delete_object(Bucket=bucket, Key="a/b")
    workspace.publish(1, b"a", 0o644, io.BytesIO(b"again"))
    maker.delete_object(Bucket=bucket, Key="a")
    assert maker.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    assert workspace.list(1) == []
