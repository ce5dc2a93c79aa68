"""Many clients at once: deleting is idempotent, and a directory that several of them empty goes without a refusal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.interfaces.s3.conftest import Shop


def test_keys_of_one_directory_are_deleted_at_once(shop: Shop, maker: Any) -> None:
    bucket = shop.bucket(maker)
    keys = [f"a/b/c/{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(lambda key: maker.put_object(Bucket=bucket, Key=key, Body=b"x"), keys))
            answers = list(pool.map(lambda key: maker.delete_object(Bucket=bucket, Key=key), keys))
            assert {answer["ResponseMetadata"]["HTTPStatusCode"] for answer in answers} == {204}
            assert maker.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_one_key_is_deleted_by_all(shop: Shop, maker: Any) -> None:
    bucket = shop.bucket(maker)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            maker.put_object(Bucket=bucket, Key="a/b", Body=b"x")
            answers = list(pool.map(lambda _: maker.delete_object(Bucket=bucket, Key="a/b"), range(8)))
            assert {answer["ResponseMetadata"]["HTTPStatusCode"] for answer in answers} == {204}


def test_puts_and_deletes_of_neighbours_never_lose_an_acknowledged_object(shop: Shop) -> None:
    # A put whose directory goes away is refused with 503, which clients repeat by default.
    maker = shop.of_principal("maker", retries={"max_attempts": 8, "mode": "standard"})
    bucket = shop.bucket(maker)

    def churn(number: int) -> None:
        for _ in range(6):
            maker.put_object(Bucket=bucket, Key=f"deep/er/{number}", Body=b"%d" % number)
            assert maker.get_object(Bucket=bucket, Key=f"deep/er/{number}")["Body"].read() == b"%d" % number
            maker.delete_object(Bucket=bucket, Key=f"deep/er/{number}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(churn, range(6)))
    assert maker.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
