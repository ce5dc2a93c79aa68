"""What S3's ways of giving access say: the owner has it, nobody else, and no setting makes anything public."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.interfaces.s3.conftest import Shop

ALL = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)


def code_of(call: Any, **arguments: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    answer = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def test_a_bucket_blocks_public_access_until_it_is_told_otherwise(maker: Any, bucket: str) -> None:
    assert maker.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"] == ALL
    wanted = ALL | {"RestrictPublicBuckets": False}
    maker.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=wanted)
    assert maker.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"] == wanted
    maker.delete_public_access_block(Bucket=bucket)
    assert code_of(maker.get_public_access_block, Bucket=bucket) == ("NoSuchPublicAccessBlockConfiguration", 404)


def test_nothing_becomes_public_when_the_block_is_removed(shop: Shop, maker: Any, bucket: str) -> None:
    maker.delete_public_access_block(Bucket=bucket)
    maker.put_object(Bucket=bucket, Key="a", Body=b"x", ACL="public-read")
    assert code_of(shop.of_principal("other").get_object, Bucket=bucket, Key="a") == ("NoSuchBucket", 404)
    assert maker.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"]["IsPublic"] is False


def test_a_bucket_that_was_told_to_block_public_acls_refuses_them(maker: Any, bucket: str) -> None:
    maker.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=ALL)
    assert code_of(maker.put_object, Bucket=bucket, Key="a", Body=b"x", ACL="public-read") == ("AccessDenied", 403)
    assert code_of(maker.head_object, Bucket=bucket, Key="a")[1] == 404
    maker.put_object(Bucket=bucket, Key="a", Body=b"x", ACL="private")


def test_acls_say_that_the_owner_has_full_control(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="a", Body=b"x")
    for answer in (maker.get_bucket_acl(Bucket=bucket), maker.get_object_acl(Bucket=bucket, Key="a")):
        assert [grant["Permission"] for grant in answer["Grants"]] == ["FULL_CONTROL"]
        assert answer["Grants"][0]["Grantee"]["ID"] == answer["Owner"]["ID"]
    maker.put_bucket_acl(Bucket=bucket, ACL="private")
    maker.put_object_acl(Bucket=bucket, Key="a", ACL="private")
    assert code_of(maker.put_bucket_acl, Bucket=bucket, ACL="public-read") == ("AccessDenied", 403)
    assert code_of(maker.put_object_acl, Bucket=bucket, Key="a", GrantRead="id=x") == ("NotImplemented", 501)
    assert code_of(maker.get_object_acl, Bucket=bucket, Key="absent") == ("NoSuchKey", 404)


def test_the_owner_of_a_bucket_owns_its_objects(shop: Shop, maker: Any, bucket: str) -> None:
    enforced = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    assert maker.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"] == enforced
    maker.delete_bucket_ownership_controls(Bucket=bucket)
    assert code_of(maker.get_bucket_ownership_controls, Bucket=bucket) == ("OwnershipControlsNotFoundError", 404)
    maker.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=enforced)
    assert maker.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"] == enforced
    other = {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    assert code_of(maker.put_bucket_ownership_controls, Bucket=bucket, OwnershipControls=other)[1] == 501
    assert code_of(maker.create_bucket, Bucket="never-made", ObjectOwnership="ObjectWriter")[1] == 501
    assert shop.house.house.desk.runs.of_bucket("never-made") is None


def test_what_needs_an_object_lock_is_refused_as_where_there_is_none(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="a", Body=b"x")
    lock = {"ObjectLockEnabled": "Enabled"}
    assert code_of(maker.put_object_lock_configuration, Bucket=bucket, ObjectLockConfiguration=lock) == ("InvalidBucketState", 409)
    assert code_of(maker.get_object_lock_configuration, Bucket=bucket) == ("ObjectLockConfigurationNotFoundError", 404)
    for call, more in ((maker.get_object_retention, {}), (maker.put_object_legal_hold, {"LegalHold": {"Status": "ON"}})):
        assert code_of(call, Bucket=bucket, Key="a", **more) == ("InvalidRequest", 400)
    assert code_of(maker.get_object_legal_hold, Bucket=bucket, Key="absent") == ("NoSuchKey", 404)


def test_a_request_may_say_whose_bucket_it_expects(maker: Any, bucket: str) -> None:
    owner = maker.get_bucket_acl(Bucket=bucket)["Owner"]["ID"]
    maker.put_object(Bucket=bucket, Key="a", Body=b"x", ExpectedBucketOwner=owner)
    for call, more in ((maker.put_object, {"Key": "b", "Body": b"x"}), (maker.get_object, {"Key": "a"}), (maker.list_objects_v2, {})):
        assert code_of(call, Bucket=bucket, ExpectedBucketOwner="somebody", **more) == ("AccessDenied", 403)
    assert maker.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
