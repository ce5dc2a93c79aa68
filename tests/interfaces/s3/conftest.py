"""The S3 door over a real appliance on a real socket, and boto3 clients of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import Config

from interfaces.s3 import S3Door
from interfaces.web.limits import Limits
from interfaces.web.pool import Pool
from tests.house_of_doors import HouseOfDoors, Started, open_house
from tests.serving import serving

POLICY = """
version: 1
roles:
  owner: [owner]
grants:
  - id: services-work
    who:
      kinds: [service, agent]
    actions: [list, read, write, delete, propose]
    paths: ["**"]
  - id: services-start-runs
    who:
      roles: [bucket-makers]
    actions: [start]
  - id: owner-starts-runs
    who:
      roles: [owner]
    actions: [start]
"""


@dataclass
class Shop:
    """An appliance with its S3 door open, its principals and the buckets made in it."""

    house: HouseOfDoors
    url: str
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def client(self, access_key: str, secret: str, token: str | None = None, **options: Any) -> Any:
        """Return a boto3 client of a key pair."""
        config = Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}).merge(Config(**options))
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=access_key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            config=config,
        )

    def of_principal(self, name: str, **options: Any) -> Any:
        """Return a client of a service principal, made when it is not there."""
        return self.client(*self.house.key_pair(name), **options)

    def of_lease(self, started: Started) -> Any:
        """Return a client of a run's lease."""
        access_key, secret, token = self.house.house.trust.access_key(started.lease)
        return self.client(access_key, secret, token or None)

    def bucket(self, client: Any) -> str:
        """Return a bucket nobody else has."""
        name = f"bucket-{next(self.numbers)}"
        client.create_bucket(Bucket=name)
        return name


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Return an appliance with an open S3 door."""
    folder: Path = tmp_path_factory.mktemp("shop")
    policy = POLICY.replace("owner: [owner]", "owner: [owner]\n  bucket-makers: [maker, other]")
    limits = Limits()
    pool = Pool("s3", limits.threads, limits.uploads)
    try:
        with open_house(folder, policy=policy) as house, serving(S3Door(house.control, pool=pool, limits=limits)) as url:
            yield Shop(house, url)
    finally:
        pool.close()


@pytest.fixture(scope="session")
def maker(shop: Shop) -> Any:
    """Return a client that makes buckets."""
    return shop.of_principal("maker")


@pytest.fixture
def bucket(shop: Shop, maker: Any) -> str:
    """Return an empty bucket."""
    return shop.bucket(maker)
