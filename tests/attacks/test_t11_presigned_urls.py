"""T11: an address that carries its own authority. CVE-2023-49105 (ownCloud believed one that no key had signed)."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.config import Config

from tests.attacks.stand import Stand
from tests.contract.doors.site import Held


def signer(stand: Stand, held: Held, **more: str) -> Any:
    settings = stand.credentials(held, "s3")["settings"] | more
    return settings["bucket"], boto3.client(
        "s3",
        endpoint_url=settings["AWS_ENDPOINT_URL"],
        region_name=settings["AWS_REGION"],
        aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=settings.get("AWS_SESSION_TOKEN"),
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )


def fetch(url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, method=method), timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def presign(client: Any, bucket: str, key: str = "work/a.txt", seconds: int = 60) -> str:
    return str(client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=seconds))


def test_an_address_is_good_for_what_was_signed_until_it_ends(stand: Stand) -> None:
    held = stand.start()
    bucket, client = signer(stand, held)
    url = presign(client, bucket)
    assert fetch(url) == (200, b"one\n")
    assert fetch(url, "PUT", b"x")[0] == fetch(url, "DELETE")[0] == 403
    assert fetch(url.replace("a.txt", "b.txt"))[0] == 403
    assert fetch(url.replace("X-Amz-Expires=60", "X-Amz-Expires=61"))[0] == 403
    assert fetch(presign(client, bucket, seconds=8 * 24 * 3600))[0] in {400, 403}
    short = presign(client, bucket, seconds=1)
    time.sleep(2.5)
    assert fetch(short)[0] in {400, 403}
    assert stand.nas.get_file(held.branch, "work/a.txt") == b"one\n"


@pytest.mark.parametrize("change", [{"AWS_SECRET_ACCESS_KEY": "x"}, {"AWS_ACCESS_KEY_ID": "ANLAAAAAAAAAAAAAAAAA"}], ids=["secret", "key"])
def test_an_address_that_no_key_of_ours_signed_is_none(stand: Stand, change: dict[str, str]) -> None:
    bucket, client = signer(stand, stand.start(), **change)
    assert fetch(presign(client, bucket))[0] == 403


def test_it_ends_with_its_lease_counts_as_a_read_and_is_in_no_log(stand: Stand) -> None:
    held = stand.start()
    bucket, client = signer(stand, held)
    url = presign(client, bucket, "inbox/letter.txt", 600)
    assert fetch(url)[0] == 200
    assert stand.taint(held) == "external/internal", "a read by an address tainted nobody"
    assert fetch(presign(client, bucket, "work/absent"))[0] == 404
    hidden_bucket, hidden = signer(stand, stand.start(paths=["work/**"]))
    assert fetch(presign(hidden, hidden_bucket, "secret/plan.txt"))[0] in {403, 404}
    stand.revoke(held)
    assert fetch(url)[0] == 403
    signature = parse_qs(urlsplit(url).query)["X-Amz-Signature"][0].encode()
    for log in stand.nas.home.glob("log/*"):
        assert signature not in log.read_bytes(), log
