"""A lease that is taken back ends what is under way at every door: in the door's own words, at once, and with nothing half done."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.contract.doors.clients.mcp import MCP
from tests.contract.doors.model import Refused
from tests.contract.doors.site import Held, Site, open_site
from tests.e2e.conftest import needs_fuse, wait_until
from tests.e2e.slow_way import SlowWay, slow_way

LARGE = 8 << 20
"""Bytes of an upload: eight minutes on a slow way."""
LINGERING = 30.0
"""The patience for a client that goes on sending although it was answered, seconds."""
AT_ONCE = 5.0
"""The patience for what takes a second at most, on a machine that does much else, seconds."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("doors")) as opened:
        yield opened


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large"
    path.write_bytes(os.urandom(LARGE))
    return path


def start_upload(url: str, user: str, large: Path, answer: Path) -> subprocess.Popen[str]:
    """Put a file with curl, which gets its password on standard input and prints the status."""
    command = ["curl", "-sS", "-K", "-", "-T", str(large), "-o", str(answer), "-w", "%{http_code}", url]
    upload = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert upload.stdin is not None
    upload.stdin.write(f"{user}\n")
    upload.stdin.close()
    upload.stdin = None
    return upload


def end_under_way(site: Site, held: Held, way: SlowWay) -> None:
    """Take the lease back while a client is in the middle of what it sends."""
    wait_until(lambda: way.is_slow)
    site.revoke(held)


def is_there(site: Site, held: Held, path: str) -> bool:
    return site.nas.get_file(held.branch, path) is not None


@needs_fuse
def test_an_open_file_of_a_mount_refuses_its_next_read(site: Site) -> None:
    held = site.start()
    place = site.nas.mounts / held.lease
    place.mkdir()
    site.control.call(site.control.authenticate(held.secret), "mount.add", {"target": held.run, "mountpoint": str(place)})
    with (place / "work" / "read" / "file").open("rb", buffering=0) as file:
        assert file.read(3) == b"one"
        site.revoke(held)
        wait_until(lambda: refusal_of(file.fileno()) == errno.EACCES, AT_ONCE)


def refusal_of(descriptor: int) -> int:
    """Return the number a read fails with, 0 when it does not."""
    try:
        os.pread(descriptor, 3, 0)
    except OSError as error:
        return error.errno or 0
    return 0


def test_a_running_webdav_upload_is_told_that_it_is_not_authorized(site: Site, large: Path, tmp_path: Path) -> None:
    held = site.start()
    given = site.credentials(held, "webdav")
    with slow_way(given["url"]) as way:
        user = f'user = "{given["settings"]["user"]}:{given["settings"]["password"]}"'
        upload = start_upload(f"{way.url}work/large", user, large, tmp_path / "answer")
        end_under_way(site, held, way)
        status, complaint = upload.communicate(timeout=AT_ONCE)
    assert status == "401", complaint
    assert b"revoked" in (tmp_path / "answer").read_bytes()
    assert not is_there(site, held, "work/large")


def test_a_running_http_upload_is_told_that_it_is_not_authorized(site: Site, large: Path, tmp_path: Path) -> None:
    held = site.start()
    with slow_way(site.doors["http"]) as way:
        url = f"{way.url}/v1/branches/{held.run}/files/work/large"
        upload = start_upload(url, f'header = "Authorization: Bearer {held.secret}"', large, tmp_path / "answer")
        end_under_way(site, held, way)
        status, complaint = upload.communicate(timeout=AT_ONCE)
    assert status == "401", complaint
    assert b'"code":"revoked"' in (tmp_path / "answer").read_bytes()
    assert not is_there(site, held, "work/large")


def s3_client(settings: dict[str, str], url: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name=settings["AWS_REGION"],
        aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=settings.get("AWS_SESSION_TOKEN"),
        config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
    )


def test_an_upload_in_parts_is_denied_its_running_part_and_its_end(site: Site, large: Path) -> None:
    held = site.start()
    settings = site.credentials(held, "s3")["settings"]
    where = {"Bucket": settings["bucket"], "Key": "work/large"}
    with slow_way(settings["AWS_ENDPOINT_URL"]) as way, closing(s3_client(settings, settings["AWS_ENDPOINT_URL"])) as direct:
        upload = direct.create_multipart_upload(**where)["UploadId"]
        first = direct.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"x" * (5 << 20))
        with ThreadPoolExecutor(1) as pool, closing(s3_client(settings, way.url)) as slow, large.open("rb") as body:
            second = pool.submit(slow.upload_part, **where, UploadId=upload, PartNumber=2, Body=body)
            end_under_way(site, held, way)
            wait_until(lambda: b"HTTP/1.1 403 " in way.said, AT_ONCE)
            # Amazon's library looks at an answer when it cannot send any more.
            assert code_of(second) == "AccessDenied"
            done = {"Parts": [{"PartNumber": 1, "ETag": first["ETag"]}]}
            finished = pool.submit(direct.complete_multipart_upload, **where, UploadId=upload, MultipartUpload=done)
            assert code_of(finished) == "AccessDenied"
    assert not is_there(site, held, "work/large")


def code_of(request: Future[Any]) -> str:
    """Return the code that a request is refused with."""
    error = request.exception(LINGERING)
    assert isinstance(error, ClientError), error
    code: str = error.response["Error"]["Code"]
    return code


def test_a_conversation_over_mcp_ends_with_its_next_call(site: Site) -> None:
    held = site.start()
    with closing(MCP.connect(site, held)) as client:
        assert client.list("work")
        site.revoke(held)
        with pytest.raises(Refused, match="401 revoked"):
            client.list("work")


def test_a_running_push_is_rejected(site: Site, large: Path, tmp_path: Path) -> None:
    held = site.start()
    given = site.credentials(held, "git")
    with slow_way(given["url"]) as way:
        parts = urlsplit(way.url)
        user, password = given["settings"]["user"], given["settings"]["password"]
        (tmp_path / ".git-credentials").write_text(f"{parts.scheme}://{user}:{password}@{parts.netloc}\n")
        run_git(tmp_path, "clone", "-q", given["url"].replace(urlsplit(given["url"]).netloc, parts.netloc), "tree")
        shutil.copy(large, tmp_path / "tree" / "work" / "large")
        run_git(tmp_path / "tree", "add", "-A")
        run_git(tmp_path / "tree", "commit", "-q", "-m", "a large file")
        push = start_git(tmp_path / "tree", "push", "origin", "HEAD")
        end_under_way(site, held, way)
        _, printed = push.communicate(timeout=AT_ONCE)
    assert push.returncode != 0
    assert "The requested URL returned error: 401" in printed
    assert not is_there(site, held, "work/large")


def start_git(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start git as a person without any settings of their own but where credentials are kept."""
    home = next(parent for parent in (folder, folder.parent) if (parent / ".git-credentials").exists())
    who = {f"GIT_{role}_{what}": "coder@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.Popen(
        ["git", "-c", "credential.helper=store", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **who},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_git(folder: Path, *arguments: str) -> None:
    done = start_git(folder, *arguments)
    _, printed = done.communicate(timeout=60)
    assert done.returncode == 0, printed
