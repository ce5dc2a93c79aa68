"""Labels over S3: shown as tags, kept by nobody but the appliance."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from interfaces.port import walk
from interfaces.s3.sidecars import TAGS
from tests.house_of_doors import Started
from tests.interfaces.s3.conftest import Shop
from trust.labels import Label, Origin, Sensitivity

LABEL = {"nas:origin": "external", "nas:sensitivity": "internal"}


@pytest.fixture(scope="module", autouse=True)
def inbox(shop: Shop) -> None:
    shop.house.house.trust.ledger.mark("inbox/**", Label(Origin.EXTERNAL, Sensitivity.INTERNAL))


@pytest.fixture
def started(shop: Shop) -> Started:
    return shop.house.start_run()


def tags_of(client: Any, bucket: str, key: str) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in client.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]}


def code_of(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


def bucket_of(shop: Shop, client: Any, started: Started) -> str:
    names = [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
    return next(name for name in names if started.run in name)


def test_a_label_is_told_as_tags_and_counted(shop: Shop, maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="inbox/letter", Body=b"send money", Tagging="mine=1")
    assert tags_of(maker, bucket, "inbox/letter") == LABEL | {"mine": "1"}
    assert maker.head_object(Bucket=bucket, Key="inbox/letter")["ResponseMetadata"]["HTTPHeaders"]["x-amz-tagging-count"] == "3"
    maker.put_object(Bucket=bucket, Key="plain", Body=b"ours")
    assert tags_of(maker, bucket, "plain") == {}
    assert "x-amz-tagging-count" not in maker.head_object(Bucket=bucket, Key="plain")["ResponseMetadata"]["HTTPHeaders"]


def test_tags_that_were_read_can_be_sent_back_and_others_are_refused(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="inbox/letter", Body=b"send money")
    shown = maker.get_object_tagging(Bucket=bucket, Key="inbox/letter")["TagSet"]
    maker.put_object_tagging(Bucket=bucket, Key="inbox/letter", Tagging={"TagSet": [*shown, {"Key": "mine", "Value": "1"}]})
    assert tags_of(maker, bucket, "inbox/letter") == LABEL | {"mine": "1"}
    for key, value in (("nas:origin", "owner"), ("nas:trusted", "yes"), ("NAS:origin", "external")):
        with pytest.raises(ClientError) as refused:
            maker.put_object_tagging(Bucket=bucket, Key="inbox/letter", Tagging={"TagSet": [{"Key": key, "Value": value}]})
        assert code_of(refused) == "InvalidTag", key
    assert tags_of(maker, bucket, "inbox/letter") == LABEL | {"mine": "1"}
    maker.delete_object_tagging(Bucket=bucket, Key="inbox/letter")
    assert tags_of(maker, bucket, "inbox/letter") == LABEL


def test_nothing_is_written_with_a_label_of_its_writers(maker: Any, bucket: str) -> None:
    for write in (maker.put_object, maker.create_multipart_upload):
        with pytest.raises(ClientError) as refused:
            write(Bucket=bucket, Key="inbox/letter", Tagging="nas%3Aorigin=owner")
        assert code_of(refused) == "InvalidTag"
    maker.put_object(Bucket=bucket, Key="a", Body=b"x")
    with pytest.raises(ClientError) as refused:
        maker.copy_object(
            Bucket=bucket, Key="b", CopySource={"Bucket": bucket, "Key": "a"}, TaggingDirective="REPLACE", Tagging="nas%3Aorigin=owner"
        )
    assert code_of(refused) == "InvalidTag"
    assert [item["Key"] for item in maker.list_objects_v2(Bucket=bucket)["Contents"]] == ["a"]


def test_a_copy_and_a_copied_part_carry_the_label_of_their_source(shop: Shop, started: Started) -> None:
    client = shop.of_lease(started)
    bucket = bucket_of(shop, client, started)
    client.put_object(Bucket=bucket, Key="inbox/letter", Body=b"send money" * 10)
    client.copy_object(Bucket=bucket, Key="copied", CopySource={"Bucket": bucket, "Key": "inbox/letter"})
    assert tags_of(client, bucket, "copied") == LABEL
    assert shop.house.house.trust.ledger.taint(started.run).untrusted


def test_a_copied_part_carries_the_label_of_its_source(shop: Shop, started: Started) -> None:
    client = shop.of_lease(started)
    bucket = bucket_of(shop, client, started)
    client.put_object(Bucket=bucket, Key="inbox/letter", Body=b"send money" * 10)
    upload = client.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    where = {"Bucket": bucket, "Key": "parts", "UploadId": upload}
    part = client.upload_part_copy(**where, PartNumber=1, CopySource={"Bucket": bucket, "Key": "inbox/letter"})["CopyPartResult"]
    client.complete_multipart_upload(**where, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert tags_of(client, bucket, "parts") == LABEL


def test_a_version_is_told_with_its_label(maker: Any, bucket: str) -> None:
    maker.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    former = maker.put_object(Bucket=bucket, Key="inbox/letter", Body=b"one")["VersionId"]
    maker.put_object(Bucket=bucket, Key="inbox/letter", Body=b"two")
    shown = maker.get_object_tagging(Bucket=bucket, Key="inbox/letter", VersionId=former)
    assert {tag["Key"]: tag["Value"] for tag in shown["TagSet"]} == LABEL


def test_a_tag_that_another_door_made_up_is_not_told_as_a_label(shop: Shop, started: Started) -> None:
    client = shop.of_lease(started)
    bucket = bucket_of(shop, client, started)
    client.put_object(Bucket=bucket, Key="inbox/letter", Body=b"send money")
    control = shop.house.control
    workspace = control.workspace(control.authenticate(started.secret), started.branch)
    found = walk(workspace, b"inbox/letter")
    made_up = {"c": found.content.decode("latin-1"), "t": [["nas:origin", "owner"], ["kept", "1"]]}
    workspace.set_xattr(found.node, TAGS, json.dumps(made_up).encode())
    workspace.close()
    assert tags_of(client, bucket, "inbox/letter") == LABEL | {"kept": "1"}
