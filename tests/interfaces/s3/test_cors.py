"""CORS rules are read as Amazon's library writes them, and the first that fits decides."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.serialize import create_serializer
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.cors import (
    METHODS,
    CorsRule,
    allow,
    allow_preflight,
    decode_rule,
    find_rule,
    parse_cors,
    render_cors,
    requested_headers,
    rule_fields,
)
from interfaces.s3.faults import S3Fault

MODEL = botocore.session.get_session().get_service_model("s3")
SERIALIZER = create_serializer("rest-xml", include_validation=False)
NAMES = st.from_regex(r"[a-z0-9.:/-]{1,10}\*?[a-z0-9.-]{0,10}", fullmatch=True)
RULES = st.builds(
    CorsRule,
    st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    st.lists(st.sampled_from(METHODS), min_size=1, max_size=3).map(tuple),
    st.lists(NAMES, max_size=3).map(tuple),
    st.lists(NAMES, max_size=3).map(tuple),
    st.none() | st.integers(0, 10**8),
    st.sampled_from(["", "one"]),
)


def written(rules: list[dict[str, Any]]) -> bytes:
    """Return the body botocore sends."""
    model = MODEL.operation_model("PutBucketCors")
    body: bytes = SERIALIZER.serialize_to_request({"Bucket": "b", "CORSConfiguration": {"CORSRules": rules}}, model)["body"]
    return body


@given(st.lists(RULES, min_size=1, max_size=4))
def test_rules_survive_their_document_and_their_note(rules: list[CorsRule]) -> None:
    assert parse_cors(render_cors(rules)) == tuple(rules) == tuple(decode_rule(rule_fields(rule)) for rule in rules)


def test_rules_are_read_as_written() -> None:
    sent = {
        "AllowedOrigins": ["*"],
        "AllowedMethods": ["GET", "PUT"],
        "AllowedHeaders": ["x-*"],
        "ExposeHeaders": ["ETag"],
        "MaxAgeSeconds": 60,
    }
    assert parse_cors(written([sent])) == (CorsRule(("*",), ("GET", "PUT"), ("x-*",), ("ETag",), 60),)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"AllowedOrigins": [], "AllowedMethods": ["GET"]}, "MalformedXML"),
        ({"AllowedOrigins": ["*"], "AllowedMethods": []}, "MalformedXML"),
        ({"AllowedOrigins": ["*"], "AllowedMethods": ["PATCH"]}, "InvalidRequest"),
        ({"AllowedOrigins": ["*a*"], "AllowedMethods": ["GET"]}, "InvalidRequest"),
        ({"AllowedOrigins": ["*"], "AllowedMethods": ["GET"], "AllowedHeaders": ["**"]}, "InvalidRequest"),
        ({"AllowedOrigins": ["*"], "AllowedMethods": ["GET"], "MaxAgeSeconds": -1}, "MalformedXML"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(rule: dict[str, Any], code: str) -> None:
    with pytest.raises(S3Fault) as caught:
        parse_cors(written([rule]))
    assert caught.value.code == code


@pytest.mark.parametrize("count", [0, 101])
def test_there_are_1_to_100_rules(count: int) -> None:
    with pytest.raises(S3Fault, match="XML"):
        parse_cors(written([{"AllowedOrigins": ["*"], "AllowedMethods": ["GET"]}] * count))


@pytest.mark.parametrize(
    ("pattern", "origin", "fits"),
    [
        ("*suffix", "foo.suffix", True),
        ("*suffix", "foo.suffix.get", False),
        ("start*end", "startend", True),
        ("start*end", "starend", False),
        ("start*end", "0start1end", False),
        ("prefix*", "prefix.suffix", True),
        ("https://a.example", "https://a.example", True),
        ("https://a.example", "https://a.example.org", False),
        ("aba*aba", "aba", False),
        ("*", "null", True),
    ],
)
def test_a_star_stands_for_anything(pattern: str, origin: str, fits: bool) -> None:
    assert (find_rule([CorsRule((pattern,), ("GET",))], origin, "GET") is not None) is fits


def test_the_first_rule_that_fits_counts() -> None:
    rules = [CorsRule(("a",), ("PUT",)), CorsRule(("*",), ("GET",), id="second"), CorsRule(("a",), ("GET",))]
    assert find_rule(rules, "a", "GET") == rules[1]
    assert find_rule(rules, "a", "DELETE") is None


def test_every_requested_header_must_be_allowed() -> None:
    rules = [CorsRule(("*",), ("GET",), ("X-Amz-*", "content-type"))]
    assert find_rule(rules, "a", "GET", requested_headers("x-amz-date, Content-Type"))
    assert find_rule(rules, "a", "GET", requested_headers("x-amz-date, x-other")) is None


def test_an_answer_names_the_origin_and_never_allows_credentials() -> None:
    rule = CorsRule(("https://*.example",), ("GET", "PUT"), ("*",), ("ETag",), 60)
    told = dict(allow_preflight(rule, "https://a.example", ["x-a", "x-b"]))
    assert told["access-control-allow-origin"] == "https://a.example"
    assert told["access-control-allow-methods"] == "GET, PUT"
    assert told["access-control-allow-headers"] == "x-a, x-b"
    assert (told["access-control-expose-headers"], told["access-control-max-age"]) == ("ETag", "60")
    assert "access-control-allow-credentials" not in told
    assert dict(allow(CorsRule(("*",), ("GET",)), "x"))["access-control-allow-origin"] == "*"
