"""Ranges of objects, of parts and of the sources of copies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.s3.faults import S3Fault
from interfaces.s3.ranges import Span, read_part_number, read_part_range, read_range, read_source_range
from interfaces.s3.sidecars import Part

PARTS = (Part(1, 5), Part(3, 4), Part(4, 1))


@pytest.mark.parametrize(
    ("value", "span"),
    [
        ("bytes=0-3", Span(0, 4, 10)),
        ("bytes=4-", Span(4, 10, 10)),
        ("bytes=-3", Span(7, 10, 10)),
        ("bytes=-30", Span(0, 10, 10)),
        ("bytes=8-100", Span(8, 10, 10)),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("lines=1-2", None),
        (None, None),
    ],
)
def test_a_range_is_the_bytes_it_names(value: str | None, span: Span | None) -> None:
    assert read_range(value, 10) == span


@pytest.mark.parametrize(("value", "size"), [("bytes=10-", 10), ("bytes=40-50", 10), ("bytes=0-", 0), ("bytes=-0", 10), ("bytes=-5", 0)])
def test_a_range_of_nothing_is_refused(value: str, size: int) -> None:
    with pytest.raises(S3Fault) as caught:
        read_range(value, size)
    assert (caught.value.code, caught.value.status) == ("InvalidRange", 416)


@given(st.text(max_size=40), st.integers(0, 100))
def test_no_header_makes_a_range_outside_the_object(value: str, size: int) -> None:
    try:
        span = read_range(value, size)
    except S3Fault:
        return
    assert span is None or 0 <= span.start < span.end <= size


def test_a_part_is_the_bytes_that_were_sent_as_it() -> None:
    assert [read_part_range(number, PARTS, 10) for number in (1, 3, 4)] == [Span(0, 5, 10), Span(5, 9, 10), Span(9, 10, 10)]


def test_an_object_written_at_once_is_its_own_first_part() -> None:
    assert read_part_range(1, (), 10) == Span(0, 10, 10)


@pytest.mark.parametrize(("number", "parts"), [(2, PARTS), (5, PARTS), (2, ())])
def test_a_part_that_was_never_sent_is_refused(number: int, parts: tuple[Part, ...]) -> None:
    with pytest.raises(S3Fault) as caught:
        read_part_range(number, parts, 10)
    assert caught.value.code == "InvalidPart"


@pytest.mark.parametrize("text", ["", "0", "10001", "x", "1.5", "-1", "٣"])
def test_what_is_no_part_number_is_refused(text: str) -> None:
    with pytest.raises(S3Fault):
        read_part_number(text)


def test_the_source_of_a_copied_part_is_whole_or_a_range_of_it() -> None:
    assert read_source_range(None, 10) == Span(0, 10, 10)
    assert read_source_range("bytes=2-9", 10) == Span(2, 10, 10)


@pytest.mark.parametrize(("value", "code"), [("bytes=2-", "InvalidArgument"), ("2-3", "InvalidArgument"), ("bytes=0-10", "InvalidRange")])
def test_a_source_range_that_reaches_beyond_or_is_none_is_refused(value: str, code: str) -> None:
    with pytest.raises(S3Fault) as caught:
        read_source_range(value, 10)
    assert caught.value.code == code
