"""A secret is taken out of what was sent back, however a server spells it."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasd.broker.scrubbing import REMOVED, SHORTEST, scrub

SECRET = b's3cr3t/+="<&> canary'
ECHOES = {
    "itself": SECRET,
    "percent": quote(SECRET, safe="").encode(),
    "percent, slashes kept": quote(SECRET).encode(),
    "percent, lower case": b"s3cr3t%2f%2b%3d%22%3c%26%3e%20canary",
    "form": quote_plus(SECRET.decode()).encode(),
    "JSON": json.dumps({"token": SECRET.decode()}).encode(),
    "JSON in JSON's other spelling": json.dumps(SECRET.decode()).replace("/", "\\/").encode(),
    "HTML": html.escape(SECRET.decode()).encode(),
    "hexadecimal": SECRET.hex().encode(),
    "HEXADECIMAL": SECRET.hex().upper().encode(),
    **{f"Basic after {len(user)}": base64.b64encode(user + b":" + SECRET) for user in (b"", b"a", b"ab", b"abc")},
    **{f"Base64 before {len(tail)}": base64.urlsafe_b64encode(SECRET + tail) for tail in (b"", b"x", b"xy")},
}


@pytest.mark.parametrize("name", ECHOES)
def test_an_echo_is_found(name: str) -> None:
    cleaned, count = scrub(b"before " + ECHOES[name] + b" after", SECRET)
    assert count >= 1
    assert REMOVED in cleaned
    assert SECRET not in cleaned
    assert cleaned.startswith(b"before ")
    assert cleaned.endswith(b" after")


@given(st.binary(min_size=SHORTEST, max_size=40), st.binary(max_size=30), st.binary(max_size=30))
def test_whatever_stands_around_it_the_secret_is_gone(secret: bytes, before: bytes, after: bytes) -> None:
    plain = before + secret + after
    assert secret not in scrub(plain, secret)[0].replace(REMOVED, b"")
    assert scrub(plain.hex().encode(), secret)[1] >= 1
    assert scrub(base64.b64encode(plain), secret)[1] >= 1
    assert scrub(quote(plain, safe="").encode(), secret)[1] >= 1


@given(st.binary(max_size=200))
def test_what_holds_no_secret_stays_as_it_is(data: bytes) -> None:
    assert scrub(data, b"a-secret-that-no-data-holds") == (data, 0)
