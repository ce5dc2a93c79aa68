"""Buckets: which there are for whom, how they are made and how they go."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tests.interfaces.s3.conftest import Shop
from tests.interfaces.s3.test_objects import body, code_of, workspace_of


def names(client: Any) -> set[str]:
    return {each["Name"] for each in client.list_buckets()["Buckets"]}


def test_a_bucket_is_a_run_whose_branch_begins_empty(shop: Shop, maker: Any, bucket: str) -> None:
    told = shop.house.call(shop.house.owner, "bucket.show", {"bucket": bucket})
    run = shop.house.call(shop.house.owner, "run.show", {"run": told["run"]})
    assert (told["kind"], run["role"], run["state"]) == ("bucket", "maker", "active")
    assert workspace_of(shop, bucket).list(1) == []
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert body(maker, told["run"], "k") == b"x"


def test_making_and_deleting_is_recorded(shop: Shop, maker: Any, bucket: str) -> None:
    maker.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "a", "Value": "1"}]})
    maker.delete_bucket(Bucket=bucket)
    kinds = [record.kind for record in shop.house.house.trust.records(0, 10_000) if record.body.get("bucket") == bucket]
    assert [kind for kind in kinds if kind.startswith("bucket.")] == ["bucket.create", "bucket.set", "bucket.delete"]


def test_a_bucket_that_holds_something_is_not_deleted(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert code_of(maker.delete_bucket, Bucket=bucket) == "BucketNotEmpty"
    maker.delete_object(Bucket=bucket, Key="k")
    maker.delete_bucket(Bucket=bucket)
    assert bucket not in names(maker)
    assert code_of(maker.list_objects_v2, Bucket=bucket) == "NoSuchBucket"


def test_a_name_can_be_used_again(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    maker.delete_object(Bucket=bucket, Key="k")
    maker.delete_bucket(Bucket=bucket)
    maker.create_bucket(Bucket=bucket)
    assert maker.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_ones_own_bucket_can_be_made_again_and_keeps_what_it_holds(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    maker.create_bucket(Bucket=bucket)
    assert body(maker, bucket, "k") == b"x"


def test_anothers_bucket_is_taken_and_does_not_exist_otherwise(shop: Shop, bucket: str) -> None:
    other = shop.of_principal("other")
    assert code_of(other.create_bucket, Bucket=bucket) == "BucketAlreadyExists"
    assert bucket not in names(other)
    for call in (other.list_objects_v2, other.delete_bucket, other.get_bucket_versioning, other.get_bucket_acl):
        assert code_of(call, Bucket=bucket) == "NoSuchBucket"
    assert code_of(other.get_object, Bucket=bucket, Key="k") == "NoSuchBucket"
    assert code_of(other.put_object, Bucket=bucket, Key="k", Body=b"x") == "NoSuchBucket"


@pytest.mark.parametrize("name", ["main", "a-", "-ab", "UPPER", "10.0.0.1", "a..b", "x" * 64])
def test_a_name_that_no_bucket_can_have_is_refused(shop: Shop, name: str) -> None:
    client = shop.of_principal("maker")
    client.meta.events.unregister("before-parameter-build.s3", "*")
    with pytest.raises(Exception, match=r"InvalidBucketName|BucketAlreadyExists|Invalid bucket name"):
        client.create_bucket(Bucket=name)


def test_who_may_not_start_runs_makes_no_buckets(shop: Shop) -> None:
    assert code_of(shop.of_principal("visitor").create_bucket, Bucket="visited") == "AccessDenied"


def test_a_lease_makes_and_deletes_no_buckets_and_sees_its_own(shop: Shop) -> None:
    started = shop.house.start_run(role="maker")
    client = shop.of_lease(started)
    assert code_of(client.create_bucket, Bucket="leased") == "AccessDenied"
    assert names(client) == {"main", started.run}
    client.put_object(Bucket=started.run, Key="k", Body=b"x")
    assert body(client, started.run, "k") == b"x"


def test_main_is_read_and_not_written(shop: Shop, maker: Any) -> None:
    assert "main" in names(maker)
    assert maker.list_objects_v2(Bucket="main")["KeyCount"] >= 0
    assert code_of(maker.put_object, Bucket="main", Key="k", Body=b"x") == "AccessDenied"
    assert code_of(maker.delete_bucket, Bucket="main") == "AccessDenied"


def test_a_commit_is_a_bucket_that_only_reads(shop: Shop, maker: Any) -> None:
    head = shop.house.house.appliance.engine.branch("main").head
    assert maker.list_objects_v2(Bucket=head)["Name"] == head
    assert code_of(maker.put_object, Bucket=head, Key="k", Body=b"x") == "AccessDenied"


def test_settings_are_kept(maker: Any, bucket: str) -> None:
    assert code_of(maker.get_bucket_tagging, Bucket=bucket) == "NoSuchTagSet"
    tags = [{"Key": "a", "Value": "1"}]
    maker.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    assert maker.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags
    maker.delete_bucket_tagging(Bucket=bucket)
    assert code_of(maker.get_bucket_tagging, Bucket=bucket) == "NoSuchTagSet"
    assert "Status" not in maker.get_bucket_versioning(Bucket=bucket)
    maker.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    assert maker.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"


def test_what_cannot_be_configured_is_absent_and_cannot_be_set(maker: Any, bucket: str) -> None:
    assert code_of(maker.get_bucket_lifecycle_configuration, Bucket=bucket) == "NoSuchLifecycleConfiguration"
    assert code_of(maker.get_bucket_policy, Bucket=bucket) == "NoSuchBucketPolicy"
    assert code_of(maker.get_bucket_website, Bucket=bucket) == "NoSuchWebsiteConfiguration"
    assert code_of(maker.put_bucket_policy, Bucket=bucket, Policy="{}") == "NotImplemented"
    assert code_of(maker.put_bucket_acl, Bucket=bucket, ACL="public-read") == "AccessDenied"
    assert code_of(maker.put_bucket_acl, Bucket=bucket, ACL="authenticated-read") in {"AccessDenied", "NotImplemented"}
    owner = maker.get_bucket_acl(Bucket=bucket)
    assert [grant["Permission"] for grant in owner["Grants"]] == ["FULL_CONTROL"]


def test_a_bucket_that_another_door_filled_is_not_empty(shop: Shop, maker: Any, bucket: str) -> None:
    workspace_of(shop, bucket).publish(1, b"by hand", 0o644, io.BytesIO(b"x"))
    assert code_of(maker.delete_bucket, Bucket=bucket) == "BucketNotEmpty"


def test_the_branch_of_a_bucket_outlives_its_lease_and_is_not_reclaimed(shop: Shop, maker: Any, bucket: str) -> None:
    run = shop.house.call(shop.house.owner, "bucket.show", {"bucket": bucket})["run"]
    house = shop.house.house
    house.runs.end(house.runs.find(run), None, "expired", "its lease expired")
    kept = house.reclaim.collect(None, dry_run=False)["kept"]
    assert f"it is the bucket {bucket}" in [each["why"] for each in kept if each["run"] == run]
    maker.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert body(maker, bucket, "k") == b"x"
