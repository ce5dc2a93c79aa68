"""Headers mean what the standard says or refuse the request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.web.names import encode_path
from interfaces.web.problems import Refusal
from interfaces.webdav.headers import (
    DEFAULT_SECONDS,
    MAX_SECONDS,
    Depth,
    read_depth,
    read_destination,
    read_expected_length,
    read_lock_token,
    read_overwrite,
    read_timeout,
    strip_prefix,
)

ANY = frozenset(Depth)
NAMES = st.lists(st.binary(min_size=1, max_size=12).filter(lambda name: name not in {b".", b".."} and not {0, 47} & set(name)), max_size=5)


def test_a_depth_that_is_not_there_is_what_the_method_says() -> None:
    assert read_depth({}, Depth.ONE, ANY) is Depth.ONE


@pytest.mark.parametrize(("text", "depth"), [("0", Depth.ZERO), (" 1", Depth.ONE), ("Infinity", Depth.INFINITY)])
def test_depths_are_read_without_regard_to_case(text: str, depth: Depth) -> None:
    assert read_depth({"depth": text}, Depth.ZERO, ANY) is depth


@pytest.mark.parametrize("text", ["2", "", "infinite", "1, 0", "-1"])
def test_a_depth_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Fault, match="Depth"):
        read_depth({"depth": text}, Depth.ZERO, ANY)


def test_a_depth_that_the_method_does_not_know_is_refused() -> None:
    with pytest.raises(Fault, match="Depth"):
        read_depth({"depth": "1"}, Depth.ZERO, frozenset({Depth.ZERO, Depth.INFINITY}))


@pytest.mark.parametrize(("headers", "expected"), [({}, True), ({"overwrite": "T"}, True), ({"overwrite": "f"}, False)])
def test_overwriting_is_the_default(headers: dict[str, str], expected: bool) -> None:
    assert read_overwrite(headers) is expected


def test_an_overwrite_that_is_neither_is_refused() -> None:
    with pytest.raises(Fault) as caught:
        read_overwrite({"overwrite": "yes"})
    assert caught.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Second-30", 30),
        ("Infinite, Second-4100000000", MAX_SECONDS),
        ("Second-99999999", MAX_SECONDS),
        ("Extend, Second-60", 60),
        ("Second-0", 1),
        ("", DEFAULT_SECONDS),
        ("soon", DEFAULT_SECONDS),
    ],
)
def test_a_lock_always_ends(text: str, seconds: int) -> None:
    assert read_timeout({"timeout": text}) == seconds


@pytest.mark.parametrize("text", ["", "urn:uuid:1", "<>", "<a b>", "<a><b>", "<" + "x" * 600 + ">"])
def test_a_lock_token_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Fault, match="names no lock"):
        read_lock_token({"lock-token": text})


def test_a_lock_token_stands_between_angles() -> None:
    assert read_lock_token({"lock-token": " <urn:uuid:1> "}) == "urn:uuid:1"


@pytest.mark.parametrize(
    "text",
    [
        "http://nas:8420/dav/main/a%20b",
        "https://NAS:8420/dav/main/a%20b/",
        "/dav/main/a%20b",
    ],
)
def test_a_destination_is_an_absolute_address_on_this_server(text: str) -> None:
    assert read_destination({"destination": text, "host": "nas:8420"}, b"/dav") == (b"main", b"a b")


@pytest.mark.parametrize(
    "text", ["http://other/dav/main/a", "http://nas:8421/dav/main/a", "/v1/files", "ftp://nas:8420/dav/main/a", "http://x@nas:8420/dav/a"]
)
def test_a_destination_elsewhere_is_a_bad_gateway(text: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_destination({"destination": text, "host": "nas:8420"}, b"/dav")
    assert caught.value.status == 502


@pytest.mark.parametrize(
    "text", ["", "a", "//nas:8420/dav/a", "http://[/dav", "/dav/a?b", "/dav/a#b", "/dav/%zz", "/dav/../a", "/dav/a%2fb"]
)
def test_a_destination_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Fault) as caught:
        read_destination({"destination": text, "host": "nas:8420"}, b"/dav")
    assert caught.value.kind is Kind.INVALID


def test_a_destination_that_was_not_encoded_is_read_as_its_bytes() -> None:
    raw = "/dav/main/é".encode().decode("latin-1")
    assert read_destination({"destination": raw, "host": "nas"}, b"/dav") == (b"main", "é".encode())


def test_a_port_that_goes_without_saying_may_be_said() -> None:
    assert read_destination({"destination": "http://nas:80/dav/main", "host": "nas"}, b"/dav") == (b"main",)


@given(NAMES)
def test_a_path_below_the_prefix_is_read_as_it_was_written(names: list[bytes]) -> None:
    assert strip_prefix(b"/dav/" + encode_path(names).encode(), b"/dav") == tuple(names)


def test_what_only_begins_like_the_prefix_is_elsewhere() -> None:
    assert strip_prefix(b"/davies/a", b"/dav") is None
    assert strip_prefix(b"/dav", b"/dav") == ()


@pytest.mark.parametrize("text", ["-1", "x", "", "9" * 30])
def test_an_announced_length_is_a_number(text: str) -> None:
    with pytest.raises(Fault, match="number of bytes"):
        read_expected_length({"x-expected-entity-length": text})


@given(st.text(), st.sampled_from(["depth", "overwrite", "timeout", "lock-token", "destination", "x-expected-entity-length"]))
def test_no_header_breaks_its_reader(text: str, name: str) -> None:
    headers = {name: text, "host": "nas"}
    for read in (
        lambda: read_depth(headers, Depth.ZERO, ANY),
        lambda: read_overwrite(headers),
        lambda: read_timeout(headers),
        lambda: read_lock_token(headers),
        lambda: read_destination(headers, b"/dav"),
        lambda: read_expected_length(headers),
    ):
        try:
            read()
        except Fault as fault:
            assert fault.kind in {Kind.INVALID, Kind.UNSUPPORTED, Kind.NAME_TOO_LONG}
