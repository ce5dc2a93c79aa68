"""Keys and the paths they live at: one to one, and never another object's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.faults import S3Fault
from interfaces.s3.keys import (
    EMPTY,
    MAX_KEY,
    MAX_NAME,
    beside_directory,
    check_key,
    decode_name,
    decode_part,
    encode_key,
    encode_segment,
    is_part,
)

WORDS = [
    "",
    ".",
    "..",
    "a",
    "s3~",
    "s3~empty",
    "s3~dot",
    "s3~name~",
    "s3~name~s3~empty",
    "s3~file~a",
    "s3~part~" + "p" * 200,
    "s3~end~x",
    "é" * 150,
]
SEGMENTS = st.one_of(st.sampled_from(WORDS), st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=300))
KEYS = st.lists(SEGMENTS, min_size=1, max_size=6).map("/".join).map(str.encode).filter(lambda key: 0 < len(key) <= MAX_KEY)


def join(names: tuple[bytes, ...]) -> bytes:
    """Return the key that names stand for, as the walk of a tree reads them."""
    segments, piece = [], b""
    for name in names:
        if is_part(name) or piece:
            part = decode_part(name)
            assert part is not None
            piece += part
            if not is_part(name):
                segments.append(piece)
                piece = b""
            continue
        segment = decode_name(name)
        assert segment is not None
        segments.append(segment)
    return b"/".join(segments)


@given(KEYS)
def test_names_lead_back_to_their_key(key: bytes) -> None:
    assert join(encode_key(key)) == key


@given(KEYS)
def test_names_are_names_a_tree_can_hold(key: bytes) -> None:
    for name in encode_key(key):
        assert 0 < len(name) <= MAX_NAME
        assert b"/" not in name
        assert b"\0" not in name
        assert name not in (b".", b"..")


@given(KEYS, KEYS)
def test_two_keys_never_share_a_path(one: bytes, other: bytes) -> None:
    assert (encode_key(one) == encode_key(other)) == (one == other)


@given(st.binary(min_size=1, max_size=MAX_NAME).filter(lambda name: name.strip(b".") and not {0x2F, 0} & set(name)))
def test_a_name_that_has_a_segment_is_the_only_one_of_it(name: bytes) -> None:
    segment = decode_name(name)
    if segment is not None and not name.startswith(b"s3~file~"):
        assert encode_segment(segment) == (name,)


@pytest.mark.parametrize("key", [b"a", b"a/b/c", b"a.b/c.d", b"x/.hidden", b"s3", b"s3-bucket/file"])
def test_an_ordinary_key_is_its_path(key: bytes) -> None:
    assert encode_key(key) == tuple(key.split(b"/"))


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (b"a//b", b"a/s3~empty/b"),
        (b"/a", b"s3~empty/a"),
        (b"a/", b"a/s3~empty"),
        (b"a/../b", b"a/s3~dotdot/b"),
        (b".", b"s3~dot"),
        (b"s3~empty", b"s3~name~s3~empty"),
        (b"s3~file~a", b"s3~name~s3~file~a"),
        (b"s3~other", b"s3~other"),
    ],
)
def test_what_a_tree_cannot_hold_has_a_name_that_says_so(key: bytes, path: bytes) -> None:
    assert encode_key(key) == tuple(path.split(b"/"))


def test_a_long_segment_is_cut_where_a_character_ends() -> None:
    names = encode_key(("é" * 300).encode())
    assert all(name.decode() for name in names)
    assert len(names) == 3


def test_an_object_beside_its_directory_keeps_its_segment() -> None:
    assert decode_name(beside_directory(b"report")) == b"report"
    assert decode_name(beside_directory(EMPTY)) == b""


def test_a_segment_too_long_to_live_beside_its_directory_is_refused() -> None:
    with pytest.raises(S3Fault) as caught:
        beside_directory(b"x" * 250)
    assert caught.value.code == "KeyTooLongError"


def test_a_name_that_is_not_text_has_no_key() -> None:
    assert decode_name(b"\xff") is None
    assert decode_name(b"s3~x\xff") is None


@pytest.mark.parametrize(
    ("key", "code"),
    [(b"x" * (MAX_KEY + 1), "KeyTooLongError"), (b"a\0b", "InvalidArgument"), (b"\xff", "InvalidArgument"), (b"", "InvalidArgument")],
)
def test_what_is_no_key_is_refused(key: bytes, code: str) -> None:
    with pytest.raises(S3Fault) as caught:
        check_key(key)
    assert caught.value.code == code


def test_the_longest_key_is_one() -> None:
    assert check_key(b"x" * MAX_KEY) == b"x" * MAX_KEY
