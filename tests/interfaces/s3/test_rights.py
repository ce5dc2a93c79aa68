"""What a lease cannot see is absent, and what it may not do is refused, in S3's words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.house_of_doors import Started
from tests.interfaces.s3.conftest import Shop
from tests.interfaces.s3.test_objects import body, code_of


@dataclass(frozen=True)
class Held:
    """A run with two clients: of its own lease, and of one that sees ``open/`` only."""

    started: Started
    wide: Any
    narrow: Any


@pytest.fixture
def held(shop: Shop) -> Iterator[Held]:
    started = shop.house.start_run(role="maker")
    wide = shop.of_lease(started)
    wide.put_object(Bucket=started.run, Key="open/k", Body=b"open")
    wide.put_object(Bucket=started.run, Key="hidden/k", Body=b"hidden")
    told = shop.house.call(started.secret, "lease.narrow", {"lease": started.lease, "paths": ["open/**"]})
    narrow = shop.of_lease(Started(started.run, started.branch, told["lease"], told["secret"]))
    yield Held(started, wide, narrow)


def told_of(call: Any, **arguments: Any) -> tuple[Any, ...]:
    """Return status, code and headers of a refusal, but for what is of the request itself."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response = caught.value.response
    headers = {name for name in response["ResponseMetadata"]["HTTPHeaders"]}
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"], response["Error"]["Message"], headers


def test_a_listing_shows_what_the_lease_sees(held: Held) -> None:
    told = held.narrow.list_objects_v2(Bucket=held.started.run)
    assert [each["Key"] for each in told["Contents"]] == ["open/k"]
    told = held.narrow.list_objects_v2(Bucket=held.started.run, Delimiter="/")
    assert [each["Prefix"] for each in told["CommonPrefixes"]] == ["open/"]
    assert held.narrow.list_objects_v2(Bucket=held.started.run, Prefix="hidden/")["KeyCount"] == 0


@pytest.mark.parametrize("method", ["get_object", "head_object", "get_object_tagging", "get_object_acl"])
def test_a_hidden_object_is_told_as_one_that_never_was(held: Held, method: str) -> None:
    call, run = getattr(held.narrow, method), held.started.run
    assert (
        told_of(call, Bucket=run, Key="hidden/k")
        == told_of(call, Bucket=run, Key="hidden/never")
        == told_of(call, Bucket=run, Key="absent/k")
    )


def test_a_hidden_object_is_not_written_and_not_deleted(held: Held) -> None:
    run = held.started.run
    assert code_of(held.narrow.put_object, Bucket=run, Key="hidden/k", Body=b"x") == "AccessDenied"
    held.narrow.delete_object(Bucket=run, Key="hidden/k")
    assert body(held.wide, run, "hidden/k") == b"hidden"


def test_a_hidden_object_is_no_source_of_a_copy(held: Held) -> None:
    run = held.started.run
    copy = {"Bucket": run, "Key": "open/copy", "CopySource": {"Bucket": run, "Key": "hidden/k"}}
    assert code_of(held.narrow.copy_object, **copy) == "NoSuchKey"


def test_the_uploads_of_another_lease_do_not_exist(held: Held) -> None:
    run = held.started.run
    upload = held.wide.create_multipart_upload(Bucket=run, Key="hidden/u")["UploadId"]
    assert held.narrow.list_multipart_uploads(Bucket=run).get("Uploads", []) == []
    assert code_of(held.narrow.list_parts, Bucket=run, Key="hidden/u", UploadId=upload) == "NoSuchUpload"


def test_versions_of_hidden_objects_do_not_exist(shop: Shop, held: Held) -> None:
    run = held.started.run
    held.wide.put_bucket_versioning(Bucket=run, VersioningConfiguration={"Status": "Enabled"})
    version = held.wide.put_object(Bucket=run, Key="hidden/v", Body=b"x")["VersionId"]
    marker = held.wide.delete_object(Bucket=run, Key="hidden/v")["VersionId"]
    told = held.narrow.list_object_versions(Bucket=run)
    assert [each["Key"] for each in told.get("Versions", []) + told.get("DeleteMarkers", [])] == ["open/k"]
    assert told_of(held.narrow.get_object, Bucket=run, Key="hidden/v") == told_of(held.narrow.get_object, Bucket=run, Key="absent/v")
    for id in (version, marker):
        assert code_of(held.narrow.get_object, Bucket=run, Key="hidden/v", VersionId=id) in {"NoSuchVersion", "NoSuchKey"}


def test_a_lease_that_only_reads_writes_nothing(shop: Shop) -> None:
    started = shop.house.start_run(role="maker", actions=["list", "read"])
    client = shop.of_lease(started)
    assert code_of(client.put_object, Bucket=started.run, Key="k", Body=b"x") == "AccessDenied"


def test_a_revoked_lease_is_refused_at_once(shop: Shop) -> None:
    started = shop.house.start_run(role="maker")
    client = shop.of_lease(started)
    client.put_object(Bucket=started.run, Key="k", Body=b"x")
    shop.house.call(shop.house.owner, "lease.revoke", {"lease": started.lease})
    assert code_of(client.get_object, Bucket=started.run, Key="k") in {"AccessDenied", "InvalidAccessKeyId", "ExpiredToken"}
