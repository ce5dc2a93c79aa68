"""What is kept beside an object: it comes back as it was, for the content it was made for and no other."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.checksums import Algorithm
from interfaces.s3.faults import S3Fault
from interfaces.s3.sidecars import (
    MAX_METADATA,
    SIDECAR,
    TAGS,
    Part,
    Sidecar,
    Summary,
    encode_tags,
    etag_of,
    read_sidecar,
    render_sidecar,
    sidecar_of,
    tags_of,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SIDECARS = st.builds(
    Sidecar,
    st.text("0123456789abcdef-", min_size=1, max_size=40),
    st.dictionaries(TEXT, TEXT, max_size=3),
    st.dictionaries(TEXT, TEXT, max_size=3),
    st.none() | st.builds(Summary, st.sampled_from(Algorithm), TEXT, st.booleans()),
    st.lists(st.builds(Part, st.integers(1, 10_000), st.integers(0, 5 << 30), TEXT), max_size=3).map(tuple),
    TEXT,
)


@dataclass(frozen=True)
class File:
    """A file, as far as a sidecar looks at it."""

    content: bytes


@given(SIDECARS, st.binary(max_size=40))
def test_a_sidecar_comes_back_for_its_content(sidecar: Sidecar, content: bytes) -> None:
    xattrs = {SIDECAR: sidecar.encode(content)}
    assert sidecar_of(File(content), xattrs) == sidecar  # type: ignore[arg-type]


@given(SIDECARS, st.binary(max_size=40), st.binary(max_size=40))
def test_another_content_has_none_of_it(sidecar: Sidecar, content: bytes, other: bytes) -> None:
    found = sidecar_of(File(other), {SIDECAR: sidecar.encode(content)})  # type: ignore[arg-type]
    assert (found == sidecar) == (other == content) or found.etag == sidecar.etag
    if other != content:
        assert (found.headers, found.metadata, found.checksum, found.parts, found.version) == ({}, {}, None, (), "")


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_file_of_another_door_has_a_stable_tag_that_is_no_md5(content: bytes, other: bytes) -> None:
    assert "-" in etag_of(File(content), {})  # type: ignore[arg-type]
    assert (etag_of(File(content), {}) == etag_of(File(other), {})) == (content == other)  # type: ignore[arg-type]


def test_tags_count_for_the_content_they_were_set_on() -> None:
    encoded = encode_tags((("a", "1"), ("b", "é")), b"one")
    assert encoded is not None
    assert tags_of(File(b"one"), {TAGS: encoded}) == (("a", "1"), ("b", "é"))  # type: ignore[arg-type]
    assert tags_of(File(b"two"), {TAGS: encoded}) == ()  # type: ignore[arg-type]
    assert encode_tags((), b"one") is None


def test_a_writer_is_heard_on_what_is_kept_and_on_nothing_else() -> None:
    sent = {"content-type": "text/plain", "expires": "x", "x-amz-meta-a": "1", "x-amz-acl": "private", "host": "h", "cache-control": ""}
    sidecar = read_sidecar(sent)
    assert (sidecar.headers, sidecar.metadata) == ({"content-type": "text/plain", "expires": "x"}, {"a": "1"})


@pytest.mark.parametrize(
    ("sent", "kept"), [("aws-chunked", None), ("aws-chunked, gzip", "gzip"), ("gzip,aws-chunked", "gzip"), ("br, gzip", "br, gzip")]
)
def test_how_a_body_travelled_is_not_what_it_is(sent: str, kept: str | None) -> None:
    assert read_sidecar({"content-encoding": sent}).headers.get("content-encoding") == kept


def test_metadata_has_a_bound() -> None:
    read_sidecar({"x-amz-meta-a": "x" * (MAX_METADATA - 1)})
    with pytest.raises(S3Fault) as caught:
        read_sidecar({"x-amz-meta-a": "x" * MAX_METADATA})
    assert caught.value.code == "MetadataTooLarge"


@pytest.mark.parametrize(("text", "told"), [("plain", "plain"), ("é", "é"), ("日本", "=?UTF-8?B?5pel5pys?=")])
def test_metadata_beyond_ascii_is_text_that_a_header_can_say(text: str, told: str) -> None:
    sidecar = read_sidecar({"x-amz-meta-a": text.encode().decode("latin-1")})
    assert sidecar.metadata == {"a": text}
    assert ("x-amz-meta-a", told) in render_sidecar(sidecar)
