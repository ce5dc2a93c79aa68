"""What is sealed under a client's key is opened by that key from any position, and by no other."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.faults import S3Fault
from interfaces.s3.sealing import (
    KEY_HEADERS,
    SOURCE_KEY_HEADERS,
    CustomerKey,
    KeyStream,
    Span,
    TurnedContent,
    check_encryption,
    decode_seal,
    draw_span,
    make_seal,
    read_key,
    render_key,
    require_key,
    seal_fields,
    tag_content,
    turn_content,
)
from tests.interfaces.s3.bodies import Trickle, read_all

SECRET = bytes(range(32))
KEY = CustomerKey(SECRET, base64.b64encode(hashlib.md5(SECRET).digest()).decode())
OTHER = CustomerKey(SECRET[::-1], "")
NONCES = st.binary(min_size=16, max_size=16)
SPANS = st.lists(st.builds(Span, st.integers(0, 90), NONCES), min_size=1, max_size=5)


def sent(prefix: str = KEY_HEADERS, **changes: str | None) -> dict[str, str]:
    headers = {"algorithm": "AES256", "key": base64.b64encode(SECRET).decode(), "key-md5": KEY.digest} | changes
    return {prefix + name: value for name, value in headers.items() if value is not None}


@given(SPANS, st.integers(1, 70), st.integers(0, 400), st.data())
def test_what_is_sealed_is_opened_from_any_position(spans: list[Span], step: int, start: int, data: st.DataObject) -> None:
    size = sum(span.size for span in spans)
    plain = data.draw(st.binary(min_size=size, max_size=size))
    sealed = read_all(TurnedContent(Trickle(plain, step), KeyStream(KEY, spans)))
    start = min(start, size)
    assert len(sealed) == size
    assert read_all(TurnedContent(Trickle(sealed[start:], step), KeyStream(KEY, spans, start)), 13) == plain[start:]


def test_a_span_is_plain_counter_mode() -> None:
    nonce = b"\xff" * 16
    expected = Cipher(algorithms.AES(SECRET), modes.CTR(nonce)).encryptor().update(b"x" * 100)
    assert KeyStream(KEY, [Span(100, nonce)]).turn(b"x" * 100) == expected
    assert KeyStream(KEY, [Span(100, nonce)], 33).turn(b"x" * 67) == expected[33:]


def test_equal_contents_under_two_nonces_look_different() -> None:
    one, two = (KeyStream(KEY, [Span(32, bytes([number]) * 16)]).turn(bytes(32)) for number in (1, 2))
    assert one != two


def test_more_bytes_than_were_announced_are_refused() -> None:
    with pytest.raises(ValueError, match="more bytes"):
        KeyStream(KEY, [Span(3, bytes(16))]).turn(b"four")


def test_a_tag_is_the_md5_and_under_a_key_what_only_the_key_can_make_of_it() -> None:
    md5 = hashlib.md5(b"known").digest()
    assert tag_content(md5, None) == md5.hex()
    assert tag_content(md5, KEY) == tag_content(md5, KEY)
    assert len({tag_content(md5, None), tag_content(md5, KEY), tag_content(md5, OTHER)}) == 3
    assert len(tag_content(md5, KEY)) == 32


def test_the_right_key_opens_and_nothing_else_does() -> None:
    seal = make_seal(KEY, os.urandom)
    require_key(seal, KEY)
    require_key(None, None)
    for found, key in ((seal, OTHER), (seal, None), (None, KEY)):
        with pytest.raises(S3Fault) as caught:
            require_key(found, key)
        assert (caught.value.code, caught.value.status) == ("InvalidRequest", 400)


def test_a_seal_survives_being_kept_and_says_nothing_of_the_key() -> None:
    seal = replace(make_seal(KEY, os.urandom), spans=(draw_span(3, os.urandom), draw_span(5, os.urandom)))
    assert decode_seal(json.loads(json.dumps(seal_fields(seal)))) == seal
    assert SECRET.hex() not in json.dumps(seal_fields(seal))
    assert make_seal(KEY, os.urandom) != make_seal(KEY, os.urandom)


def test_without_a_key_content_is_as_it_is() -> None:
    source = Trickle(b"plain")
    assert turn_content(source, None, ()) is source
    span = draw_span(5, os.urandom)
    assert read_all(turn_content(turn_content(Trickle(b"plain"), KEY, [span]), KEY, [span])) == b"plain"


@pytest.mark.parametrize("prefix", [KEY_HEADERS, SOURCE_KEY_HEADERS])
def test_a_key_is_read_from_its_headers_and_told_without_the_secret(prefix: str) -> None:
    assert read_key(sent(prefix), prefix) == KEY
    assert read_key({}, prefix) is None
    assert dict(render_key(KEY)) == {KEY_HEADERS + "algorithm": "AES256", KEY_HEADERS + "key-md5": KEY.digest}
    assert render_key(None) == []
    assert "secret" not in repr(KEY)


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": "AES128"},
        {"algorithm": None},
        {"key": None},
        {"key": "c2hvcnQ="},
        {"key": "not base64"},
        {"key": "\xff"},
        {"key-md5": None},
        {"key-md5": base64.b64encode(bytes(16)).decode()},
        {"key-md5": ""},
    ],
)
def test_a_key_that_is_incomplete_or_wrong_is_refused(changes: dict[str, str | None]) -> None:
    with pytest.raises(S3Fault) as caught:
        read_key(sent(**changes))
    assert (caught.value.code, caught.value.status) == ("InvalidArgument", 400)


@pytest.mark.parametrize(
    ("headers", "fine"),
    [
        ({}, True),
        (sent(), True),
        ({"x-amz-server-side-encryption": "AES256"}, True),
        ({"x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": "k"}, True),
        ({"x-amz-server-side-encryption": "AES256", "x-amz-server-side-encryption-aws-kms-key-id": "k"}, False),
        ({"x-amz-server-side-encryption-aws-kms-key-id": "k"}, False),
        ({"x-amz-server-side-encryption": "aes:kms"}, False),
        ({"x-amz-server-side-encryption": "AES256"} | sent(), False),
    ],
)
def test_encryption_that_contradicts_itself_is_refused(headers: dict[str, str], fine: bool) -> None:
    if fine:
        check_encryption(headers)
        return
    with pytest.raises(S3Fault) as caught:
        check_encryption(headers)
    assert caught.value.code == "InvalidArgument"
