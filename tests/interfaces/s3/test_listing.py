"""Listings through the wire: pages, encodings and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.faults import S3Fault
from interfaces.s3.listing import decode_token, encode_token
from tests.interfaces.s3.test_objects import code_of

KEYS = ["a", "a b/é", "b+c", "d/e/f", "d/g", "h\n", "é"]


@pytest.fixture
def filled(maker: Any, bucket: str) -> str:
    for key in KEYS:
        maker.put_object(Bucket=bucket, Key=key, Body=b"x")
    return bucket


@given(st.binary(max_size=200))
def test_a_token_leads_back_to_its_key(key: bytes) -> None:
    assert decode_token(encode_token(key)) == key


@given(st.text(max_size=40))
def test_no_token_breaks_the_parser(token: str) -> None:
    try:
        decode_token(token)
    except S3Fault as fault:
        assert fault.code == "InvalidArgument"


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("operation", ["list_objects", "list_objects_v2"])
def test_pages_are_the_whole(maker: Any, filled: str, operation: str, size: int) -> None:
    pages = maker.get_paginator(operation).paginate(Bucket=filled, PaginationConfig={"PageSize": size})
    assert [each["Key"] for page in pages for each in page.get("Contents", [])] == sorted(KEYS, key=str.encode)


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("operation", ["list_objects", "list_objects_v2"])
def test_pages_with_a_delimiter_show_each_prefix_once(maker: Any, filled: str, operation: str, size: int) -> None:
    found: list[str] = []
    for page in maker.get_paginator(operation).paginate(Bucket=filled, Delimiter="/", PaginationConfig={"PageSize": size}):
        found += [each["Key"] for each in page.get("Contents", [])] + [each["Prefix"] for each in page.get("CommonPrefixes", [])]
    assert sorted(found) == sorted(["a", "a b/", "b+c", "d/", "h\n", "é"])


def test_a_listing_begins_behind_what_it_is_told(maker: Any, filled: str) -> None:
    told = maker.list_objects_v2(Bucket=filled, StartAfter="d/e/f")
    assert [each["Key"] for each in told["Contents"]] == ["d/g", "h\n", "é"]
    told = maker.list_objects(Bucket=filled, Marker="d/", Delimiter="/")
    assert [each["Key"] for each in told["Contents"]] == ["h\n", "é"]
    assert "CommonPrefixes" not in told


def test_a_page_of_nothing_is_empty_and_final(maker: Any, filled: str) -> None:
    told = maker.list_objects_v2(Bucket=filled, MaxKeys=0)
    assert (told["KeyCount"], told["IsTruncated"]) == (0, False)


def test_an_owner_is_told_where_it_is_asked_for(maker: Any, filled: str) -> None:
    assert "Owner" not in maker.list_objects_v2(Bucket=filled)["Contents"][0]
    assert maker.list_objects_v2(Bucket=filled, FetchOwner=True)["Contents"][0]["Owner"]["ID"] == "maker"
    assert maker.list_objects(Bucket=filled)["Contents"][0]["Owner"]["ID"] == "maker"


def test_what_cannot_be_understood_is_refused(maker: Any, filled: str) -> None:
    assert code_of(maker.list_objects_v2, Bucket=filled, ContinuationToken="%%%") == "InvalidArgument"
    assert code_of(maker.list_objects_v2, Bucket=filled, EncodingType="base64") == "InvalidArgument"
    assert code_of(maker.list_objects, Bucket=filled, MaxKeys=-1) == "InvalidArgument"
