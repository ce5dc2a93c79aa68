"""T8: a request to S3 that nobody signed. CVE-2026-40344, GHSA-9c4q-hq6p-c237, CVE-2020-11012."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import closing
from urllib.parse import urlencode

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.attacks.stand import LOOT, Stand
from tests.contract.doors.clients.wire import Wire

TRAILER = {
    "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "x-amz-decoded-content-length": "5",
    "x-amz-trailer": "x-amz-checksum-crc32",
}
CHUNKED = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"
HANDLERS = (
    ("GET", "/", ""),
    ("GET", "/{bucket}", "list-type=2"),
    ("GET", "/{bucket}", "versions"),
    ("GET", "/{bucket}", "location"),
    ("GET", "/{bucket}", "uploads"),
    ("PUT", "/{bucket}-other", ""),
    ("DELETE", "/{bucket}", ""),
    ("POST", "/{bucket}", "delete"),
    ("GET", "/{bucket}/work/a.txt", ""),
    ("HEAD", "/{bucket}/work/a.txt", ""),
    ("PUT", "/{bucket}/work/a.txt", ""),
    ("DELETE", "/{bucket}/work/a.txt", ""),
    ("GET", "/{bucket}/work/a.txt", "tagging"),
    ("PUT", "/{bucket}/work/a.txt", "tagging"),
    ("POST", "/{bucket}/work/a.txt", "uploads"),
    ("PUT", "/{bucket}/work/a.txt", "partNumber=1&uploadId=x"),
    ("POST", "/{bucket}/work/a.txt", "uploadId=x"),
)
FORGED = "AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=" + "0" * 64


def ways(key: str) -> Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]:
    """Return headers and query of requests that nobody with the secret made."""
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{key}/20260101/us-east-1/s3/aws4_request",
        "X-Amz-Expires": "604800",
    }
    return {
        "nothing": ({}, {}),
        "an empty header": ({"Authorization": ""}, {}),
        "a scheme alone": ({"Authorization": "AWS4-HMAC-SHA256"}, {}),
        "a made up signature": ({"Authorization": FORGED.format(key=key), "x-amz-date": "20260101T000000Z"}, {}),
        "the key id as a password": ({"Authorization": "Basic " + base64.b64encode(f"{key}:{key}".encode()).decode()}, {}),
        "the old scheme": ({"Authorization": f"AWS {key}:AAAAAAAAAAAAAAAAAAAAAAAAAAA="}, {}),
        "a query without a signature": ({}, query),
        "a query with a made up one": (
            {},
            query | {"X-Amz-Signature": "0" * 64, "X-Amz-SignedHeaders": "host", "X-Amz-Date": "20260101T000000Z"},
        ),
        "an unsigned trailer": ({**TRAILER, "Authorization": FORGED.format(key=key)}, {}),
        "credentials in the query alone": ({}, {"AWSAccessKeyId": key, "Signature": "x", "Expires": "99999999999"}),
    }


@pytest.mark.parametrize("way", ways("x"))
def test_no_handler_answers_what_nobody_signed(stand: Stand, way: str) -> None:
    held = stand.start()
    settings = stand.credentials(held, "s3")["settings"]
    headers, query = ways(settings["AWS_ACCESS_KEY_ID"])[way]
    with closing(Wire(settings["AWS_ENDPOINT_URL"])) as wire:
        base = settings["AWS_ENDPOINT_URL"].partition(wire.host)[2]
        for method, path, asked in HANDLERS:
            text = "&".join(part for part in (asked, urlencode(query)) if part)
            body = CHUNKED if "trailer" in way and method in {"PUT", "POST"} else b"hello" if method in {"PUT", "POST"} else None
            reply = wire.send(method, base + path.format(bucket=settings["bucket"]) + (f"?{text}" if text else ""), headers, body)
            assert reply.status in {400, 401, 403, 503}, (method, path, reply.told())
            assert b"one\n" not in reply.body and LOOT not in reply.body
    assert stand.nas.get_file(held.branch, "work/a.txt") == b"one\n"


def test_a_signature_over_other_bytes_stores_nothing(stand: Stand) -> None:
    held = stand.start()
    settings = stand.credentials(held, "s3")["settings"]
    credentials = Credentials(settings["AWS_ACCESS_KEY_ID"], settings["AWS_SECRET_ACCESS_KEY"], settings.get("AWS_SESSION_TOKEN"))
    url = f"{settings['AWS_ENDPOINT_URL']}/{settings['bucket']}/work/a.txt"
    request = AWSRequest("PUT", url, data=b"hello")
    S3SigV4Auth(credentials, "s3", settings["AWS_REGION"]).add_auth(request)
    with closing(Wire(url)) as wire:
        target = url.partition(wire.host)[2]
        assert wire.send("PUT", target, dict(request.headers.items()), b"HELLO").status >= 400
        assert (
            wire.send(
                "PUT", target, {**dict(request.headers.items()), "x-amz-copy-source": f"/{settings['bucket']}/work/b.txt"}, b""
            ).status
            >= 400
        )
        assert wire.send("DELETE", target, dict(request.headers.items()), None).status == 403
    assert stand.nas.get_file(held.branch, "work/a.txt") == b"one\n"
