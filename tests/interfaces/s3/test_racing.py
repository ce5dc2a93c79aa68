"""Many clients at once on keys that lie above and below one another: nothing is lost, and nothing but a retry is ever told."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

from tests.interfaces.s3.conftest import Shop
from tests.interfaces.s3.test_objects import body, workspace_of

KEYS = ["a", "a/b", "a/b/c", "a/", "a//d", "e/f"]
RETRIED = {"ServiceUnavailable", "SlowDown"}


def try_to(call: Any, **arguments: Any) -> str:
    """Return the error code of a call, empty when it did what it should."""
    try:
        call(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def test_clients_above_and_below_one_another_never_meet_more_than_a_retry(shop: Shop, maker: Any, bucket: str) -> None:
    def work(seed: int) -> set[str]:
        chosen = random.Random(seed)
        told = set()
        for _ in range(30):
            key = chosen.choice(KEYS)
            if chosen.random() < 0.6:
                told.add(try_to(maker.put_object, Bucket=bucket, Key=key, Body=key.encode()))
            else:
                told.add(try_to(maker.delete_object, Bucket=bucket, Key=key))
        return told

    with ThreadPoolExecutor(8) as pool:
        told = set().union(*pool.map(work, range(8)))
    assert told <= RETRIED | {""}
    for each in maker.list_objects_v2(Bucket=bucket).get("Contents", []):
        assert body(maker, bucket, each["Key"]) == each["Key"].encode()
    for key in KEYS:
        maker.delete_object(Bucket=bucket, Key=key)
    assert workspace_of(shop, bucket).list(1) == []


def test_readers_of_an_object_never_miss_it_while_keys_below_it_come_and_go(maker: Any, bucket: str) -> None:
    maker.put_object(Bucket=bucket, Key="a", Body=b"there")

    def write(_: int) -> None:
        for _ in range(15):
            try_to(maker.put_object, Bucket=bucket, Key="a/b", Body=b"below")
            try_to(maker.delete_object, Bucket=bucket, Key="a/b")

    def read(_: int) -> list[bytes]:
        return [body(maker, bucket, "a") for _ in range(40)]

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, number) for number in range(2)]
        found = [each for read_by_one in pool.map(read, range(2)) for each in read_by_one]
        for each in writing:
            each.result()
    assert set(found) == {b"there"}
