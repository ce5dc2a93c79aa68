"""Durations, sizes, times, ids and paths: what people write and read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasd.durations import parse_duration, parse_size, render_time
from nasd.ids import make_id
from nasd.paths import is_below, parse_path, render_path

NAMES = st.binary(min_size=1, max_size=20).filter(lambda name: b"/" not in name and b"\x00" not in name and name not in (b".", b".."))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("7d", 604800), ("2", 2), (5, 5), ("1.5h", 5400), ("250ms", 0.25)]
)
def test_durations_are_read(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-3s", "3s!", None, True, -1])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "amount"), [("10MiB", 10 << 20), ("5GB", 5 * 10**9), (7, 7), ("0", 0), ("3 kib", 3072)])
def test_sizes_are_read(text: object, amount: int) -> None:
    assert parse_size(text) == amount


@pytest.mark.parametrize("text", ["", "many", "5 potatoes", "-1", True, -1, "1.5MiB"])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


def test_times_are_rfc_3339_in_utc() -> None:
    assert render_time(0) == "1970-01-01T00:00:00Z"
    assert render_time(None) is None


def test_ids_sort_by_time_and_differ_within_a_millisecond() -> None:
    early, late = make_id("r", 1000.0, b"\xff\xff\xff\xff"), make_id("r", 1000.001, b"\x00\x00\x00\x00")
    assert early < late
    assert make_id("r", 1000.0, b"\x00\x00\x00\x01") != make_id("r", 1000.0, b"\x00\x00\x00\x02")
    assert len(early) == 16


@given(st.lists(NAMES, max_size=5).map(b"/".join))
def test_every_path_has_one_text_and_every_text_its_path(path: bytes) -> None:
    text = render_path(path)
    text.encode("utf-8")
    assert parse_path(text) == path


@given(st.lists(NAMES, min_size=1, max_size=3).map(b"/".join), st.lists(NAMES, min_size=1, max_size=3).map(b"/".join))
def test_two_paths_never_share_a_text(one: bytes, other: bytes) -> None:
    assert (render_path(one) == render_path(other)) == (one == other)


@pytest.mark.parametrize("text", ["a/../b", "..", ".", "a//b", "a/./b", "a\x00b", r"a/\x2e\x2e/b"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        parse_path(text)


def test_below_is_by_component() -> None:
    assert is_below(b"proj/a/x", b"proj/a")
    assert is_below(b"proj/a", b"proj/a")
    assert is_below(b"anything", b"")
    assert not is_below(b"proj/ab", b"proj/a")
