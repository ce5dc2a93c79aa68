from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.lines import merge_lines, unify_lines

BASE = b"one\ntwo\nthree\nfour\nfive\n"
texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=6).map(b"".join)


def test_changes_apart_combine() -> None:
    assert merge_lines(BASE, BASE.replace(b"one", b"1"), BASE.replace(b"five", b"5")) == b"1\ntwo\nthree\nfour\n5\n"


def test_changes_of_one_line_do_not_combine() -> None:
    assert merge_lines(BASE, BASE.replace(b"one", b"1"), BASE.replace(b"one", b"I")) is None


def test_changes_that_touch_do_not_combine() -> None:
    assert merge_lines(BASE, BASE.replace(b"two", b"2"), BASE.replace(b"three", b"3")) is None


def test_the_same_change_on_both_sides_is_made_once() -> None:
    assert merge_lines(BASE, BASE + b"six\n", BASE + b"six\n") == BASE + b"six\n"


def test_binary_content_is_neither_merged_nor_shown() -> None:
    assert merge_lines(b"\0", b"\0a", b"\0") is None
    assert unify_lines(b"f", b"f", b"\0", b"x") is None


@given(texts, texts)
def test_an_unchanged_side_gives_the_other(base: bytes, side: bytes) -> None:
    assert merge_lines(base, side, base) == merge_lines(base, base, side) == merge_lines(base, side, side) == side


@given(texts, texts, texts)
def test_a_merge_is_the_same_from_both_sides(base: bytes, ours: bytes, theirs: bytes) -> None:
    assert merge_lines(base, ours, theirs) == merge_lines(base, theirs, ours)


@given(st.lists(st.sampled_from([b"x", b"y", b"\r", b"\x85", b"\n"]), max_size=8).map(b"".join), texts)
@settings(max_examples=25, deadline=None)
def test_patch_applies_what_the_diff_says(tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes) -> None:
    folder = tmp_path_factory.mktemp("patch")
    target: Path = folder / "f"
    target.write_bytes(old)
    patch = unify_lines(b"f", b"f", old, new)
    assert patch is not None
    if patch:
        subprocess.run(["git", "apply", "--unsafe-paths", "-p1"], input=patch, cwd=folder, check=True, capture_output=True, timeout=20)
    assert target.read_bytes() == new
