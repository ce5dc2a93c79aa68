"""A lease that was narrowed by its secret alone does no operation of S3 beyond its paths: not one of the whole table."""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from interfaces.s3.app import OPERATIONS
from tests.interfaces.s3.conftest import Shop
from trust.derived import derive_key_pair
from trust.tokens import narrow_token

SECRET = b"what only the lease above may see"
HIDDEN, OPEN = "hidden/kept.txt", "open/kept.txt"
UNSAID = "hidden/another.txt"
"""What no request names, so that no answer may."""
BODIES = {
    "POST bucket delete": f"<Delete><Object><Key>{HIDDEN}</Key></Object></Delete>",
    "PUT object tagging": "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>",
    "POST object uploadId": '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"e"</ETag></Part></CompleteMultipartUpload>',
    "PUT object": "overwritten",
    "PUT object uploadId": "a part",
}
QUERIES = {"list-type": "list-type=2", "uploadId": "uploadId={upload}&partNumber=1"}


@dataclass(frozen=True)
class Family:
    """A run's lease and one below it that sees ``open/`` only, each with what signs for it."""

    url: str
    run: str
    above: Credentials
    below: Credentials
    upload: str
    """An upload of the hidden key, begun by the lease above."""

    def ask(self, who: Credentials, operation: str, key: str = HIDDEN, source: str = HIDDEN) -> tuple[int, bytes]:
        """Send the operation of a name, about a key, and return status and body."""
        method, level, *rest = operation.split(" ")
        parts = [QUERIES.get(name, name).format(upload=self.upload) for name in rest if name != "copy"]
        path = "/".join(["", *{"service": [], "bucket": [self.run], "object": [self.run, key]}[level]]) or "/"
        headers = {"x-amz-copy-source": f"/{self.run}/{source}"} if "copy" in rest else {}
        headers |= {"x-amz-object-attributes": "ETag"} if "attributes" in rest else {}
        body = BODIES.get(operation, "").encode()
        request = AWSRequest(method, self.url + path + ("?" + "&".join(parts) if parts else ""), headers=headers, data=body)
        S3SigV4Auth(who, "s3", "us-east-1").add_auth(request)
        address = urllib.parse.urlsplit(str(request.url))
        connection = http.client.HTTPConnection(address.netloc, timeout=30)
        connection.request(
            method, f"{address.path}?{address.query}" if address.query else address.path, body, dict(request.headers.items())
        )
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found


@pytest.fixture
def family(shop: Shop) -> Iterator[Family]:
    started = shop.house.start_run(role="maker")
    above = derive_key_pair(started.secret)
    client = shop.client(*above[:2], above[2] or None)
    client.put_object(Bucket=started.run, Key=HIDDEN, Body=SECRET)
    client.put_object(Bucket=started.run, Key=UNSAID, Body=SECRET)
    client.put_object(Bucket=started.run, Key=OPEN, Body=b"open")
    upload = client.create_multipart_upload(Bucket=started.run, Key=HIDDEN)["UploadId"]
    below = derive_key_pair(narrow_token(started.secret, {"p": ["open/**"], "who": ["helper"]}))
    yield Family(shop.url, started.run, Credentials(*above[:2], above[2] or None), Credentials(*below), upload)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_no_operation_reaches_beyond_the_paths_of_the_lease(family: Family, operation: str) -> None:
    if operation in {"DELETE bucket", "POST object uploads"}:
        return  # below, and in a test of its own
    status, body = family.ask(family.below, operation)
    assert SECRET not in body and b"another.txt" not in body
    if operation.split(" ")[1] == "object":
        # What is not there is removed at once, in S3, and nothing is told by it.
        assert status == 204 if operation == "DELETE object" else status >= 400, body
    elif status < 400 and operation != "POST bucket delete":
        assert family.ask(family.above, operation)[0] < 400
    assert family.ask(family.above, "GET object") == (200, SECRET)
    assert family.ask(family.above, "GET object uploadId")[0] == 200
    assert b"hidden" not in family.ask(family.below, "GET bucket list-type")[1]


def test_an_upload_that_was_begun_beyond_the_paths_never_becomes_an_object(family: Family, shop: Shop) -> None:
    """Beginning names a key and touches nothing; the parts are bytes without a name until they are put under one."""
    client = shop.client(family.below.access_key, family.below.secret_key, family.below.token)
    upload = client.create_multipart_upload(Bucket=family.run, Key=HIDDEN)["UploadId"]
    part = client.upload_part(Bucket=family.run, Key=HIDDEN, UploadId=upload, PartNumber=1, Body=b"not what was there")
    with pytest.raises(ClientError) as caught:
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        client.complete_multipart_upload(Bucket=family.run, Key=HIDDEN, UploadId=upload, MultipartUpload=parts)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404)
    assert family.ask(family.above, "GET object") == (200, SECRET)


def test_a_lease_deletes_no_bucket(family: Family) -> None:
    assert family.ask(family.below, "DELETE bucket")[0] >= 400


@pytest.mark.parametrize("operation", ["PUT object copy", "PUT object uploadId copy"])
def test_what_may_not_be_read_is_copied_to_no_place_that_may_be_written(family: Family, operation: str) -> None:
    assert family.ask(family.below, "PUT object copy", "open/copied.txt", OPEN)[0] == 200
    status, body = family.ask(family.below, operation, "open/stolen.txt", HIDDEN)
    assert status in (403, 404) and SECRET not in body
    assert family.ask(family.above, "GET object", "open/stolen.txt")[0] == 404
    status, _ = family.ask(family.below, operation, HIDDEN, OPEN)
    assert status in (403, 404) and family.ask(family.above, "GET object") == (200, SECRET)


def test_a_batch_of_removals_removes_nothing_beyond_the_paths(family: Family) -> None:
    """A key that is not seen is told as one that is not there, which S3 calls deleted."""
    never = family.ask(family.below, "POST bucket delete")
    assert never[0] == 200 and b"another.txt" not in never[1]
    assert family.ask(family.above, "GET object") == (200, SECRET)


def test_the_wider_session_token_does_not_go_with_the_narrower_key(family: Family, shop: Shop) -> None:
    for token in (None, derive_key_pair(narrow_token(_whole(shop), {"p": ["**"]}))[2], family.above.token):
        mixed = Credentials(family.below.access_key, family.below.secret_key, token)
        assert family.ask(mixed, "GET object", OPEN)[0] == 403


def _whole(shop: Shop) -> str:
    secret: Any = shop.house.start_run(role="maker").secret
    return str(secret)
