"""The table of what is measured: one row a case. A door adds its rows, and its server to `servers.SERVERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clients import Figure, get_large, get_small, list_folder, put_large, put_small
from s3 import list_keys, list_prefixes
from servers import Server

SMALL, LARGE = 4 << 10, 1 << 30


@dataclass(frozen=True, slots=True)
class Case:
    """One row: what is done with how much content and by how many clients, at which of our doors, beside which peers."""

    name: str
    door: str
    peers: tuple[str, ...]
    measure: Callable[[Server, Path, int], Figure]
    size: int
    clients: int = 1


CASES = (
    Case("GET 4 KiB", "http", ("nginx",), get_small, SMALL, clients=8),
    Case("GET 1 GiB", "http", ("nginx",), get_large, LARGE),
    Case("PUT 4 KiB", "http", ("nginx", "weed", "juicefs", "rclone"), put_small, SMALL, clients=16),
    Case("PUT 1 GiB", "http", ("nginx", "weed", "juicefs", "rclone"), put_large, LARGE),
    Case("GET 4 KiB", "webdav", ("apache", "rclone", "wsgidav", "juicefs"), get_small, SMALL, clients=8),
    Case("PUT 4 KiB", "webdav", ("apache", "rclone", "wsgidav", "juicefs"), put_small, SMALL, clients=16),
    Case("PROPFIND 1,000 entries, 4 properties", "webdav", ("apache", "rclone", "wsgidav", "juicefs"), list_folder, SMALL),
    Case("GET 1 GiB", "webdav", ("apache", "rclone", "wsgidav"), get_large, LARGE),
    Case("GET 4 KiB", "s3", ("nginx", "weed-s3", "juicefs-s3", "rclone-s3"), get_small, SMALL, clients=8),
    Case("GET 1 GiB", "s3", ("nginx", "weed-s3", "juicefs-s3", "rclone-s3"), get_large, LARGE),
    Case("PUT 4 KiB", "s3", ("weed-s3", "juicefs-s3", "rclone-s3"), put_small, SMALL, clients=16),
    Case("PUT 1 GiB", "s3", ("weed-s3", "juicefs-s3", "rclone-s3"), put_large, LARGE),
    Case("list 10,000 keys", "s3", ("weed-s3", "juicefs-s3"), list_keys, SMALL),
    Case("list 100 prefixes of 10,000 keys", "s3", ("weed-s3", "juicefs-s3"), list_prefixes, SMALL),
)
