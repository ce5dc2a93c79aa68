"""The pure rules of the family: names, conditions, ranges, limits of documents."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interfaces.faults import Fault, Kind
from interfaces.web.conditions import MAX_RANGES, Validators, Verdict, judge, select_ranges
from interfaces.web.limits import Limits, depth_of, parse_document
from interfaces.web.names import encode_path, split_path
from interfaces.web.problems import Refusal

names = st.binary(min_size=1, max_size=20).filter(lambda name: name not in {b".", b".."} and not {0, 0x2F} & set(name))
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
CURRENT = Validators('"now"', 1_000)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(st.lists(names, max_size=6))
def test_a_path_that_was_written_is_read_back(path: list[bytes]) -> None:
    assert split_path(encode_path(path).encode()) == tuple(path)


@given(st.binary(max_size=40))
@example(b"%2e%2E")
@example(b"a%2fb")
def test_no_text_is_read_as_a_name_that_leaves_its_directory(raw: bytes) -> None:
    try:
        found = split_path(raw)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert all(name not in {b"", b".", b".."} and b"/" not in name and b"\0" not in name for name in found)
        assert split_path(encode_path(found).encode()) == found


@given(documents)
def test_depth_is_counted_without_parsing(value: object) -> None:
    assert depth_of(json.dumps(value).encode()) == depth(value)
    assert depth_of(json.dumps(value, ensure_ascii=False).encode()) == depth(value)


@given(st.dictionaries(st.text(max_size=8), documents, max_size=5))
def test_what_is_within_the_limits_is_read_as_it_was_sent(value: dict[str, object]) -> None:
    assert parse_document(json.dumps(value).encode(), Limits()) == value


@given(st.binary(max_size=60))
@example(b"[" * 2_000)
@example(b'"' + b"\\" * 2_001)
def test_any_other_bytes_are_refused_and_nothing_else_happens(text: bytes) -> None:
    try:
        assert isinstance(parse_document(text, Limits()), dict)
    except Fault as fault:
        assert fault.kind is Kind.INVALID


@given(st.integers(0, 50), st.text("bytes=-0123456789, ", max_size=14).map(lambda text: "bytes=" + text))
@example(10, "bytes=0-1,3-4, -2")
@example(10, "bytes=0-5,5-6")
@example(10, "bytes=٣-٤")
def test_ranges_are_inside_the_file_apart_and_less_than_it_or_refused(size: int, header: str) -> None:
    try:
        found = select_ranges({"range": header}, CURRENT, size)
    except Refusal as refusal:
        assert refusal.status == 416
        assert refusal.headers["content-range"] == f"bytes */{size}"
    else:
        assert all(0 <= start < end <= size for start, end in found)
        assert len(found) <= MAX_RANGES
        assert len({byte for start, end in found for byte in range(start, end)}) == sum(end - start for start, end in found)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("bytes=0-0", [(0, 1)]),
        ("bytes=2-", [(2, 10)]),
        ("bytes=-3", [(7, 10)]),
        ("bytes=-30", [(0, 10)]),
        ("Bytes=1-2 , 7-8", [(1, 3), (7, 9)]),
        ("bytes=7-8,1-2", [(7, 9), (1, 3)]),
        ("bytes=1-2,50-60", [(1, 3)]),
        ("bytes=0-5,3-6", []),
        ("bytes=0-4,5-9", []),
        ("bytes=5-4", []),
        ("bytes=", []),
        ("bytes=a-b", []),
        ("lines=1-2", []),
        ("bytes=" + ",".join(["0-0"] * (MAX_RANGES + 1)), []),
    ],
)
def test_ranges_are_read_as_the_standard_says(header: str, found: list[tuple[int, int]]) -> None:
    assert select_ranges({"range": header}, CURRENT, 10) == found


def test_a_range_of_another_state_of_the_file_is_none() -> None:
    assert select_ranges({"range": "bytes=0-1", "if-range": '"before"'}, CURRENT, 10) == []
    assert select_ranges({"range": "bytes=0-1", "if-range": '"now"'}, CURRENT, 10) == [(0, 2)]


@pytest.mark.parametrize(
    ("method", "headers", "verdict"),
    [
        ("GET", {}, Verdict.PROCEED),
        ("GET", {"if-none-match": '"now"'}, Verdict.NOT_MODIFIED),
        ("HEAD", {"if-none-match": 'W/"now", "x"'}, Verdict.NOT_MODIFIED),
        ("GET", {"if-none-match": "*"}, Verdict.NOT_MODIFIED),
        ("GET", {"if-none-match": '"x", "y"'}, Verdict.PROCEED),
        ("PUT", {"if-none-match": '"now"'}, Verdict.FAILED),
        ("PUT", {"if-match": '"x", "now"'}, Verdict.PROCEED),
        ("PUT", {"if-match": 'W/"now"'}, Verdict.FAILED),
        ("PUT", {"if-match": "*"}, Verdict.PROCEED),
        ("GET", {"if-modified-since": "Thu, 01 Jan 1970 00:16:40 GMT"}, Verdict.NOT_MODIFIED),
        ("GET", {"if-modified-since": "Thu, 01 Jan 1970 00:16:39 GMT"}, Verdict.PROCEED),
        ("GET", {"if-modified-since": "yesterday"}, Verdict.PROCEED),
        ("PUT", {"if-unmodified-since": "Thu, 01 Jan 1970 00:16:40 GMT"}, Verdict.PROCEED),
        ("PUT", {"if-unmodified-since": "yesterday"}, Verdict.FAILED),
        ("PUT", {"if-match": '"now"', "if-unmodified-since": "Thu, 01 Jan 1970 00:00:00 GMT"}, Verdict.PROCEED),
    ],
)
def test_conditions_are_judged_as_the_standard_says(method: str, headers: dict[str, str], verdict: Verdict) -> None:
    assert judge(method, headers, CURRENT) is verdict


def test_conditions_on_what_is_not_there() -> None:
    assert judge("PUT", {"if-none-match": "*"}, None) is Verdict.PROCEED
    assert judge("PUT", {"if-match": "*"}, None) is Verdict.FAILED
