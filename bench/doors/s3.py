"""The S3 door and the gateways people use today: how they are started, and what is asked of buckets.

1. Every request is signed (version 4, in its address), and every server checks it.
2. Making objects is no part of what a listing costs.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.client import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError
from clients import Failed, Figure
from servers import Missing, Server, Start, find_program, free_port, running, running_nas

ACCESS_KEY, SECRET = "BENCHBENCHBENCHBENCH", "a-secret-key-for-the-bench-of-doors-0123"
BUCKET = "bench"
KEYS, FOLDERS = 10_000, 100
_EXPIRY = 86_400
_TRIES = 40


@dataclass(frozen=True, slots=True)
class S3Server(Server):
    """A server of a bucket, and the key pair for it."""

    endpoint: str
    bucket: str
    access_key: str
    secret: str

    def address(self, method: str, name: str) -> str:
        """Return the signed address of an object."""
        request = AWSRequest(method=method, url=f"{self.endpoint}/{self.bucket}/{name}")
        S3SigV4QueryAuth(Credentials(self.access_key, self.secret), "s3", "us-east-1", expires=_EXPIRY).add_auth(request)
        return str(request.url)

    def client(self) -> Any:
        """Return a boto3 client."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret,
            config=Config(s3={"addressing_style": "path"}, max_pool_connections=16, retries={"max_attempts": 10}),
        )


@contextmanager
def serve_s3(folder: Path) -> Iterator[Server]:
    """Run the appliance and give the branch of a run as a bucket, with the key pair of its lease."""
    with running_nas(folder) as (status, run, call):
        settings = json.loads(call("lease", "credentials", run["lease"], "--for", "s3", "--json"))["settings"]
        pids = (status["pid"], *status.get("gateways", ()))
        endpoint = settings["AWS_ENDPOINT_URL"].rstrip("/")
        keys = settings["AWS_ACCESS_KEY_ID"], settings["AWS_SECRET_ACCESS_KEY"]
        yield S3Server("nas s3", f"{endpoint}/{run['run']}/", (), tuple(pids), endpoint, run["run"], *keys)


@contextmanager
def serve_weed_s3(folder: Path) -> Iterator[Server]:
    """Run SeaweedFS with its S3 gateway."""
    binary, port = find_program("weed"), free_port()
    folder.mkdir(parents=True)
    known = {
        "name": "bench",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [known]}))
    ports = ["-master.port", str(free_port()), "-volume.port", str(free_port()), "-filer.port", str(free_port()), "-s3.port", str(port)]
    command = [binary, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=8", "-filer", "-s3", *ports]
    with running([*command, f"-s3.config={folder}/s3.json"], port) as pid:
        yield _with_bucket("seaweedfs s3", port, pid)


@contextmanager
def serve_juicefs_s3(folder: Path) -> Iterator[Server]:
    """Run the S3 gateway of JuiceFS over files below a folder, with its metadata in SQLite."""
    binary, port = find_program("juicefs"), free_port()
    folder.mkdir(parents=True)
    meta = f"sqlite3://{folder}/meta.db"
    volume = ["format", "--storage", "file", "--bucket", f"{folder}/data/", "--trash-days", "0", meta, "bench"]
    subprocess.run([binary, "--no-agent", *volume], check=True, capture_output=True)
    options = ["--multi-buckets", "--keep-etag", "--no-usage-report", "--cache-dir", str(folder / "cache")]
    command = [binary, "--no-agent", "gateway", *options, meta, f"127.0.0.1:{port}"]
    with running(command, port, MINIO_ROOT_USER=ACCESS_KEY, MINIO_ROOT_PASSWORD=SECRET) as pid:
        yield _with_bucket("juicefs s3", port, pid)


@contextmanager
def serve_rclone_s3(folder: Path) -> Iterator[Server]:
    """Run ``rclone serve s3`` over a folder."""
    binary, port = find_program("rclone"), free_port()
    (folder / "files").mkdir(parents=True)
    command = [binary, "--config", "/dev/null", "serve", "s3", str(folder / "files"), "--addr", f"127.0.0.1:{port}"]
    with running([*command, "--auth-key", f"{ACCESS_KEY},{SECRET}"], port) as pid:
        yield _with_bucket("rclone s3", port, pid)


S3_SERVERS: dict[str, Start] = {
    "s3": serve_s3,
    "weed-s3": serve_weed_s3,
    "juicefs-s3": serve_juicefs_s3,
    "rclone-s3": serve_rclone_s3,
}


def list_keys(server: Server, content: Path, clients: int) -> Figure:
    """Have boto3 list ten thousand keys, page by page."""
    del content, clients
    client = _filled(server)
    return _measured(server, 2, lambda: sum(page["KeyCount"] for page in _pages(server, client)))


def list_prefixes(server: Server, content: Path, clients: int) -> Figure:
    """Have boto3 list the same keys with a delimiter, one answer of a hundred prefixes."""
    del content, clients
    client = _filled(server)
    return _measured(server, 50, lambda: len(next(iter(_pages(server, client, Delimiter="/")))["CommonPrefixes"]))


def _measured(server: Server, times: int, ask: Callable[[], int]) -> Figure:
    server.forget_peak()
    cpu, began = server.cpu(), time.monotonic()
    for _ in range(times):
        assert ask() in (KEYS, FOLDERS)
    return Figure(times, time.monotonic() - began, server.cpu() - cpu, server.peak())


def _pages(server: Server, client: Any, **options: str) -> Any:
    assert isinstance(server, S3Server)
    return client.get_paginator("list_objects_v2").paginate(Bucket=server.bucket, Prefix="listed/", **options)


def _filled(server: Server) -> Any:
    """Return a client of a bucket with ten thousand keys in a hundred folders."""
    assert isinstance(server, S3Server)
    client = server.client()
    last = f"listed/d{FOLDERS - 1:02d}/k{KEYS - 1:05d}"
    if client.list_objects_v2(Bucket=server.bucket, Prefix=last)["KeyCount"]:
        return client
    names = [f"listed/d{number % FOLDERS:02d}/k{number:05d}" for number in range(KEYS)]
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: client.put_object(Bucket=server.bucket, Key=name, Body=b"x"), names))
    except ClientError as error:
        raise Failed(str(error)) from error
    return client


def _with_bucket(name: str, port: int, pid: int) -> S3Server:
    endpoint = f"http://127.0.0.1:{port}"
    server = S3Server(name, f"{endpoint}/{BUCKET}/", (), (pid,), endpoint, BUCKET, ACCESS_KEY, SECRET)
    _make_bucket(server)
    return server


def _make_bucket(server: S3Server) -> None:
    """Make the bucket; a gateway listens before what is behind it answers."""
    for _ in range(_TRIES):
        try:
            server.client().create_bucket(Bucket=BUCKET)
        except (BotoCoreError, ClientError) as error:
            refused = error
            time.sleep(0.5)
        else:
            return
    raise Missing(f"{server.name} makes no bucket: {refused}")
