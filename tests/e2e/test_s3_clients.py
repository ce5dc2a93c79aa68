"""The S3 clients people use, each at its usual work on a branch that is mounted at the same time.

Each client gets the key pair of a run's lease, as ``nas lease credentials`` prints it. What it writes is compared with what the mount
shows, and what the mount writes with what it reads.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import boto3
import pytest
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

from tests.e2e.conftest import NAS, Nas, needs_fuse, wait_until

pytestmark = needs_fuse

MIB = 1 << 20
TIMEOUT = 180


@dataclass(frozen=True)
class Site:
    """A run's branch as an S3 client and as a mount see it."""

    nas: Nas
    lease: str
    bucket: str
    settings: Mapping[str, str]
    mount: Path
    folder: Path

    @property
    def endpoint(self) -> str:
        return self.settings["AWS_ENDPOINT_URL"]

    def client(self, **options: object) -> object:
        """Return a boto3 client."""
        config = Config(retries={"max_attempts": 2}, s3={"addressing_style": "path"}).merge(Config(**options))  # type: ignore[arg-type]
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.settings["AWS_REGION"],
            aws_access_key_id=self.settings["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.settings["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=self.settings.get("AWS_SESSION_TOKEN"),
            config=config,
        )

    def run(self, *command: str, expect: int = 0) -> str:
        """Run a client that reads the environment, and return what it printed."""
        kept = {name: value for name, value in self.settings.items() if name.startswith("AWS_")}
        environment = {
            "PATH": f"{NAS.parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        done = subprocess.run(
            command, env=environment | kept, capture_output=True, text=True, timeout=TIMEOUT, cwd=self.folder, check=False
        )
        assert done.returncode == expect, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.nas.logs()}"
        return done.stdout


@pytest.fixture
def site(shared: Nas, tmp_path: Path) -> Iterator[Site]:
    run = shared.start()
    given = shared.json("lease", "credentials", run["lease"], "--for", "s3")["settings"]
    place = shared.mount(run["run"])
    folder = tmp_path / "client"
    folder.mkdir()
    yield Site(shared, run["lease"], given["bucket"], given, place, folder)
    shared.run("umount", str(place), expect=None)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with small, empty, deep, oddly named and large files."""
    root = tmp_path / "tree"
    for name, data in {
        "readme.txt": b"hello\n",
        "empty": b"",
        "deep/er/and/deeper.bin": bytes(range(256)) * 40,
        "odd/näme with spaces & plus+.txt": b"odd\n",
        "odd/100%.txt": b"percent\n",
        "large.bin": os.urandom(9 * MIB),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def same(left: Path, right: Path) -> bool:
    """Tell whether two folders hold the same files with the same bytes."""
    names = [sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) for root in (left, right)]
    return names[0] == names[1] and all(filecmp.cmp(left / name, right / name, shallow=False) for name in names[0])


def needs(program: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Skip a test where a client is not installed, and say so."""
    found = shutil.which(program, path=f"{NAS.parent}:{os.environ['PATH']}")
    return pytest.mark.skipif(found is None, reason=f"{program} is not installed")


def test_boto3_does_its_usual_work(site: Site, tree: Path) -> None:
    client = site.client()
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=4)
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        client.upload_file(str(path), site.bucket, f"up/{path.relative_to(tree)}", Config=config)
    assert same(tree, site.mount / "up")
    keys = [
        entry["Key"]
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=site.bucket, Prefix="up/", PaginationConfig={"PageSize": 2})
        for entry in page["Contents"]
    ]
    assert keys == sorted(f"up/{path.relative_to(tree)}" for path in tree.rglob("*") if path.is_file())
    for key in keys:
        target = site.folder / "down" / key.removeprefix("up/")
        target.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(site.bucket, key, str(target), Config=config)
    assert same(tree, site.folder / "down")
    client.copy({"Bucket": site.bucket, "Key": "up/large.bin"}, site.bucket, "copied/large.bin", Config=config)
    assert filecmp.cmp(site.mount / "copied/large.bin", tree / "large.bin", shallow=False)
    answer = client.delete_objects(Bucket=site.bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    assert len(answer["Deleted"]) == len(keys)
    wait_until(lambda: not (site.mount / "up").exists(), 5.0)


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_boto3_checksums_are_verified_and_given_back(site: Site, algorithm: str) -> None:
    client = site.client()
    put = client.put_object(Bucket=site.bucket, Key="sum", Body=b"data" * 1000, ChecksumAlgorithm=algorithm)
    got = client.get_object(Bucket=site.bucket, Key="sum", ChecksumMode="ENABLED")
    assert got["Body"].read() == b"data" * 1000
    assert got[f"Checksum{algorithm}"] == put[f"Checksum{algorithm}"]


def test_boto3_conditions_keep_updates_from_being_lost(site: Site) -> None:
    client = site.client()
    first = client.put_object(Bucket=site.bucket, Key="once", Body=b"1", IfNoneMatch="*")["ETag"]
    for condition in ({"IfNoneMatch": "*"}, {"IfMatch": '"0"'}):
        with pytest.raises(ClientError, match="PreconditionFailed"):
            client.put_object(Bucket=site.bucket, Key="once", Body=b"2", **condition)
    (site.mount / "once").write_bytes(b"changed on the mount")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=site.bucket, Key="once", Body=b"2", IfMatch=first)
    assert (site.mount / "once").read_bytes() == b"changed on the mount"


def test_a_presigned_url_works_in_any_http_client_until_the_lease_ends(site: Site) -> None:
    client = site.client(signature_version="s3v4")
    put = client.generate_presigned_url("put_object", {"Bucket": site.bucket, "Key": "by url.txt"}, ExpiresIn=300)
    get = client.generate_presigned_url("get_object", {"Bucket": site.bucket, "Key": "by url.txt"}, ExpiresIn=300)
    with urlopen(Request(put, b"from anybody", method="PUT"), timeout=30) as answer:
        assert answer.status == 200
    assert (site.mount / "by url.txt").read_bytes() == b"from anybody"
    with urlopen(get, timeout=30) as answer:
        assert answer.read() == b"from anybody"
    site.nas.run("lease", "revoke", site.lease)
    with pytest.raises(OSError, match="403"):
        urlopen(get, timeout=30)


def test_what_the_mount_writes_is_an_object_at_once(site: Site) -> None:
    client = site.client()
    (site.mount / "dir").mkdir()
    (site.mount / "dir" / "file.txt").write_bytes(b"by hand")
    assert client.get_object(Bucket=site.bucket, Key="dir/file.txt")["Body"].read() == b"by hand"
    tag = client.head_object(Bucket=site.bucket, Key="dir/file.txt")["ETag"]
    assert client.head_object(Bucket=site.bucket, Key="dir/file.txt")["ETag"] == tag
    (site.mount / "dir" / "file.txt").write_bytes(b"again")
    assert client.head_object(Bucket=site.bucket, Key="dir/file.txt")["ETag"] != tag


@needs("aws")
def test_awscli_syncs_both_ways(site: Site, tree: Path) -> None:
    site.run("aws", "s3", "sync", str(tree), f"s3://{site.bucket}/cli")
    assert same(tree, site.mount / "cli")
    (site.mount / "cli" / "readme.txt").write_bytes(b"changed on the mount\n")
    site.run("aws", "s3", "sync", f"s3://{site.bucket}/cli", str(site.folder / "down"))
    assert same(site.mount / "cli", site.folder / "down")
    (tree / "empty").unlink()
    site.run("aws", "s3", "sync", "--delete", str(tree), f"s3://{site.bucket}/cli")
    assert same(tree, site.mount / "cli")
    assert "large.bin" in site.run("aws", "s3", "ls", "--recursive", f"s3://{site.bucket}/cli/")
    site.run("aws", "s3", "mv", f"s3://{site.bucket}/cli/readme.txt", f"s3://{site.bucket}/moved.txt")
    assert (site.mount / "moved.txt").read_bytes() == b"hello\n"
    site.run("aws", "s3", "rm", "--recursive", f"s3://{site.bucket}/cli")
    assert not (site.mount / "cli").exists()


@needs("s3cmd")
def test_s3cmd_puts_gets_and_syncs(site: Site, tree: Path) -> None:
    host = site.endpoint.partition("//")[2]
    (site.folder / "s3cmd.conf").write_text(
        "[default]\n"
        f"access_key = {site.settings['AWS_ACCESS_KEY_ID']}\nsecret_key = {site.settings['AWS_SECRET_ACCESS_KEY']}\n"
        f"access_token = {site.settings.get('AWS_SESSION_TOKEN', '')}\n"
        f"host_base = {host}\nhost_bucket = {host}\nuse_https = False\nbucket_location = us-east-1\nmultipart_chunk_size_mb = 5\n"
    )
    s3cmd = ("s3cmd", "-c", str(site.folder / "s3cmd.conf"), "--no-progress")
    site.run(*s3cmd, "sync", f"{tree}/", f"s3://{site.bucket}/cmd/")
    assert same(tree, site.mount / "cmd")
    assert "readme.txt" in site.run(*s3cmd, "ls", f"s3://{site.bucket}/cmd/")
    site.run(*s3cmd, "get", f"s3://{site.bucket}/cmd/large.bin", str(site.folder / "large.bin"))
    assert filecmp.cmp(site.folder / "large.bin", tree / "large.bin", shallow=False)
    assert hashlib.md5(b"hello\n").hexdigest() in site.run(*s3cmd, "info", f"s3://{site.bucket}/cmd/readme.txt")
    site.run(*s3cmd, "cp", f"s3://{site.bucket}/cmd/readme.txt", f"s3://{site.bucket}/copy.txt")
    assert (site.mount / "copy.txt").read_bytes() == b"hello\n"
    site.run(*s3cmd, "del", "--recursive", "--force", f"s3://{site.bucket}/cmd/")
    assert not (site.mount / "cmd").exists()


@needs("rclone")
def test_rclone_copies_checks_and_purges(site: Site, tree: Path) -> None:
    remote = f':s3,provider=Other,env_auth=true,region=local,endpoint="{site.endpoint}":{site.bucket}/clone'
    rclone = ("rclone", "--config", "/dev/null", "--s3-upload-cutoff", "6M", "--s3-chunk-size", "5M")
    site.run(*rclone, "sync", str(tree), remote)
    assert same(tree, site.mount / "clone")
    site.run(*rclone, "check", "--download", str(tree), remote)
    (site.mount / "clone" / "fresh.txt").write_bytes(b"from the mount")
    site.run(*rclone, "copy", remote, str(site.folder / "down"))
    assert same(site.mount / "clone", site.folder / "down")
    site.run(*rclone, "moveto", f"{remote}/readme.txt", f"{remote}/renamed.txt")
    assert (site.mount / "clone" / "renamed.txt").read_bytes() == b"hello\n"
    site.run(*rclone, "purge", remote)
    assert not (site.mount / "clone").exists()


@needs("s5cmd")
def test_s5cmd_copies_in_parallel(site: Site, tree: Path) -> None:
    s5cmd = ("s5cmd", "--endpoint-url", site.endpoint)
    site.run(*s5cmd, "cp", "--part-size", "5", f"{tree}/", f"s3://{site.bucket}/five/")
    assert same(tree, site.mount / "five")
    site.run(*s5cmd, "cp", "--part-size", "5", f"s3://{site.bucket}/five/*", f"{site.folder}/down/")
    assert same(tree, site.folder / "down")
    assert "large.bin" in site.run(*s5cmd, "ls", f"s3://{site.bucket}/five/*")
    site.run(*s5cmd, "rm", f"s3://{site.bucket}/five/*")
    assert not (site.mount / "five").exists()


def test_minio_for_python_streams_and_composes(site: Site, tree: Path) -> None:
    minio = pytest.importorskip("minio", reason="minio is not installed")
    from minio.commonconfig import ComposeSource

    settings = site.settings
    host = site.endpoint.partition("//")[2]
    client = minio.Minio(
        host,
        access_key=settings["AWS_ACCESS_KEY_ID"],
        secret_key=settings["AWS_SECRET_ACCESS_KEY"],
        session_token=settings.get("AWS_SESSION_TOKEN"),
        secure=False,
        region=settings["AWS_REGION"],
    )
    client.fput_object(site.bucket, "m/large.bin", str(tree / "large.bin"), part_size=5 * MIB)
    client.fput_object(site.bucket, "m/readme.txt", str(tree / "readme.txt"))
    assert filecmp.cmp(site.mount / "m/large.bin", tree / "large.bin", shallow=False)
    client.compose_object(site.bucket, "m/both", [ComposeSource(site.bucket, "m/large.bin"), ComposeSource(site.bucket, "m/readme.txt")])
    assert (site.mount / "m/both").read_bytes() == (tree / "large.bin").read_bytes() + b"hello\n"
    assert sorted(each.object_name for each in client.list_objects(site.bucket, prefix="m/")) == ["m/both", "m/large.bin", "m/readme.txt"]
    client.fget_object(site.bucket, "m/both", str(site.folder / "both"))
    assert filecmp.cmp(site.folder / "both", site.mount / "m/both", shallow=False)
