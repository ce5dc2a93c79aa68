"""A page of another origin reaches a bucket exactly as far as the bucket's rules let it, and only with a signature."""

from __future__ import annotations

from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from tests.interfaces.s3.conftest import Shop

RULES = {"CORSRules": [{"AllowedOrigins": ["https://*.example"], "AllowedMethods": ["GET"], "ExposeHeaders": ["ETag"]}]}
PAGE = {"Origin": "https://a.example"}
ASKS = {"Access-Control-Request-Method": "GET"}


def ask(url: str, method: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Send a request as a browser does and return status and headers."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=30)
    connection.request(method, f"{parts.path}?{parts.query}", headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}


@pytest.fixture
def client(maker: Any) -> Any:
    return maker


@pytest.fixture
def bucket(shop: Shop, client: Any) -> str:
    name = shop.bucket(client)
    client.put_object(Bucket=name, Key="a", Body=b"data")
    client.put_bucket_cors(Bucket=name, CORSConfiguration=RULES)
    return name


def test_the_rules_of_a_bucket_are_set_read_and_removed(client: Any, bucket: str) -> None:
    assert client.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES["CORSRules"]
    client.delete_bucket_cors(Bucket=bucket)
    with pytest.raises(ClientError, match="NoSuchCORSConfiguration"):
        client.get_bucket_cors(Bucket=bucket)


def test_a_preflight_is_answered_by_the_rules(shop: Shop, bucket: str) -> None:
    url = f"{shop.url}/{bucket}/a"
    status, headers = ask(url, "OPTIONS", PAGE | ASKS)
    assert (status, headers["access-control-allow-origin"], headers["access-control-allow-methods"]) == (200, "https://a.example", "GET")
    assert ask(url, "OPTIONS", {"Origin": "https://evil.test"} | ASKS)[0] == 403
    assert ask(url, "OPTIONS", PAGE | {"Access-Control-Request-Method": "PUT"})[0] == 403
    assert ask(url, "OPTIONS", PAGE)[0] == ask(url, "OPTIONS", ASKS)[0] == 400


def test_a_preflight_does_not_tell_whether_there_is_a_bucket(shop: Shop, client: Any) -> None:
    without = shop.bucket(client)
    there, absent = (ask(f"{shop.url}/{name}/a", "OPTIONS", PAGE | ASKS) for name in (without, "never-made"))
    assert there[0] == absent[0] == 403
    assert set(there[1]) == set(absent[1])


def test_answers_and_refusals_say_to_the_page_that_it_may_have_them(bucket: str, shop: Shop) -> None:
    signer = shop.of_principal("maker", signature_version="s3v4")
    url = signer.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "a"})
    status, headers = ask(url, "GET", PAGE)
    assert (status, headers["access-control-allow-origin"], headers["access-control-expose-headers"]) == (200, "https://a.example", "ETag")
    assert "access-control-allow-credentials" not in headers
    status, headers = ask(f"{shop.url}/{bucket}/a", "GET", PAGE)
    assert (status, headers["access-control-allow-origin"]) == (403, "https://a.example")
    for origin in ({}, {"Origin": "https://evil.test"}):
        status, headers = ask(url, "GET", origin)
        assert status == 200
        assert "access-control-allow-origin" not in headers


def test_the_rules_go_with_their_bucket(shop: Shop, client: Any, bucket: str) -> None:
    client.delete_object(Bucket=bucket, Key="a")
    client.delete_bucket(Bucket=bucket)
    client.create_bucket(Bucket=bucket)
    assert ask(f"{shop.url}/{bucket}/a", "OPTIONS", PAGE | ASKS)[0] == 403


def test_rules_that_cannot_be_are_refused(client: Any, bucket: str) -> None:
    with pytest.raises(ClientError, match="wildcard"):
        client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [{"AllowedOrigins": ["*a*"], "AllowedMethods": ["GET"]}]})
    assert client.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES["CORSRules"]
