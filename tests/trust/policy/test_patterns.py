from __future__ import annotations

import fnmatch
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trust.errors import PatternInvalid
from trust.policy.covering import covered, covers, overlap
from trust.policy.patterns import (
    MAX_LENGTH,
    MAX_NAMES,
    MAX_PARTIAL,
    matches_any,
    may_match_below,
    parse_pattern,
    path_set,
    uniform_below,
)

NAMES = ["a", "a*a", "ab*b", "b", "ab", "aab", "é", "*", "?", "a*", "*b", "a?", "*a*", "?*", "**"]
LEAVES = [b"a", b"b", b"ab", b"aab", b"ba", b"\xff", "é".encode(), b"a\xffb"]
patterns = (
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
    .filter(lambda names: ("**", "**") not in itertools.pairwise(names))
    .map("/".join)
)
paths = st.lists(st.sampled_from(LEAVES), max_size=5).map(b"/".join)
SHORT_PATHS = [b"/".join(names) for count in range(4) for names in itertools.product(LEAVES[:6], repeat=count)]
below = st.lists(st.sampled_from(LEAVES), min_size=1, max_size=3).map(b"/".join)


def slow_match(pattern: list[str], names: list[bytes]) -> bool:
    """The definition, without any cleverness."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return any(slow_match(pattern[1:], names[count:]) for count in range(len(names) + 1))
    if not names:
        return False
    form = re.compile(fnmatch.translate(pattern[0].replace("[", "[[]")), re.DOTALL)
    return form.match(names[0].decode("utf-8", "surrogateescape")) is not None and slow_match(pattern[1:], names[1:])


def names_of(path: bytes) -> list[bytes]:
    return path.split(b"/") if path else []


def join(directory: bytes, rest: bytes) -> bytes:
    return directory + b"/" + rest if directory else rest


@given(patterns, paths)
def test_a_pattern_matches_what_its_definition_says(pattern: str, path: bytes) -> None:
    expected = slow_match(pattern.split("/"), names_of(path))
    assert parse_pattern(pattern).matches(path) == expected
    assert path_set((pattern,)).matches(path) == expected


@given(st.lists(patterns, max_size=4).map(tuple), paths)
def test_a_set_matches_when_one_of_its_patterns_does(texts: tuple[str, ...], path: bytes) -> None:
    assert matches_any(texts, path) == any(parse_pattern(text).matches(path) for text in texts)


@given(patterns, patterns)
def test_covers_never_says_yes_wrongly(wider: str, narrower: str) -> None:
    if covers(wider, narrower):
        for path in filter(parse_pattern(narrower).matches, SHORT_PATHS):
            assert parse_pattern(wider).matches(path)


@given(patterns)
def test_every_pattern_covers_itself_and_is_covered_by_everything(pattern: str) -> None:
    assert covers(pattern, pattern)
    assert covers("**", pattern)


@pytest.mark.parametrize(
    ("wider", "narrower", "expected"),
    [
        ("proj/a", "proj/ab", False),
        ("proj/a/**", "proj/ab/**", False),
        ("proj/**", "proj/a/**", True),
        ("proj/a/**", "proj/**", False),
        ("src/**", "src", True),
        ("src/*", "src/**", False),
        ("src/**", "src/*/x", True),
        ("**/*.py", "**/test_*.py", True),
        ("**/test_*.py", "**/*.py", False),
        ("**/x/**", "a/x/b", True),
        ("*/b", "a/*", False),
        ("a/**/b", "a/b", True),
    ],
)
def test_covers_answers_the_common_cases_exactly(wider: str, narrower: str, expected: bool) -> None:
    assert covers(wider, narrower) is expected
    assert covered(("zzz", wider), narrower) is expected


@given(patterns, paths, below)
def test_what_matches_below_a_directory_is_announced(pattern: str, directory: bytes, rest: bytes) -> None:
    assert may_match_below(pattern, directory) or not parse_pattern(pattern).matches(join(directory, rest))


def test_nothing_is_announced_where_nothing_can_match() -> None:
    assert not may_match_below("src/a/**", b"docs")
    assert not may_match_below("src/a", b"src/a")
    assert may_match_below("src/a/**", b"src")
    assert may_match_below("src/a/**", b"")


@given(st.lists(patterns, min_size=1, max_size=3).map(tuple), paths, st.sampled_from(LEAVES), st.sampled_from(LEAVES), paths)
def test_a_uniform_directory_treats_all_its_names_alike(
    texts: tuple[str, ...], directory: bytes, one: bytes, other: bytes, rest: bytes
) -> None:
    deep_one, deep_other = (b"/".join(filter(None, (directory, name, rest))) for name in (one, other))
    if uniform_below(texts, directory):
        assert matches_any(texts, join(directory, one)) == matches_any(texts, join(directory, other))
        assert matches_any(texts, deep_one) == matches_any(texts, deep_other)


@given(st.lists(patterns, min_size=1, max_size=3).map(tuple), paths, below, below)
def test_a_uniform_subtree_treats_everything_below_alike(texts: tuple[str, ...], directory: bytes, one: bytes, other: bytes) -> None:
    if path_set(texts).uniform_subtree(directory):
        assert matches_any(texts, join(directory, one)) == matches_any(texts, join(directory, other))


@given(st.lists(patterns, min_size=1, max_size=3).map(tuple), paths, paths, below)
def test_moving_between_directories_that_are_the_same_below_changes_no_answer(
    texts: tuple[str, ...], one: bytes, other: bytes, rest: bytes
) -> None:
    if path_set(texts).same_below(one, other):
        assert matches_any(texts, join(one, rest)) == matches_any(texts, join(other, rest))


@pytest.mark.parametrize(
    ("text", "one", "other", "expected"),
    [
        ("**/id_rsa", b"a", b"b/c", True),
        ("**/.aws/credentials", b".aws", b"aws", False),
        ("src/**", b"src", b"lib", False),
        ("src/**", b"src/a", b"src/b/c", True),
        ("src/**", b"lib", b"docs", True),
        ("src/x", b"src/x", b"docs", True),
    ],
)
def test_directories_are_told_apart_by_what_could_be_below(text: str, one: bytes, other: bytes, expected: bool) -> None:
    assert path_set((text,)).same_below(one, other) is expected


def test_subtrees_below_a_granted_directory_are_uniform() -> None:
    assert path_set(("src/**",)).uniform_subtree(b"src/deep")
    assert path_set(("src/**",)).uniform_subtree(b"docs")
    assert not path_set(("src/**",)).uniform_subtree(b"")
    assert not path_set(("src/**", "**/*.pem")).uniform_subtree(b"src")
    assert not path_set(("src/*",)).uniform_subtree(b"src")


@pytest.mark.parametrize(
    "text",
    ["", "/a", "a/", "a//b", ".", "a/./b", "../a", "a/..", "**/**", "a**", "**a", "a\0b", "a\nb", "\ud800", "x" * (MAX_LENGTH + 1)],
)
def test_what_is_not_normalised_is_no_pattern(text: str) -> None:
    with pytest.raises(PatternInvalid):
        parse_pattern(text)


def test_the_cost_of_a_pattern_is_bounded_by_its_parts() -> None:
    parse_pattern("/".join(["a"] * MAX_NAMES))
    parse_pattern("/".join(["a*"] * MAX_PARTIAL))
    for text in ("/".join(["a"] * (MAX_NAMES + 1)), "/".join(["a*"] * (MAX_PARTIAL + 1))):
        with pytest.raises(PatternInvalid):
            parse_pattern(text)


def test_a_star_matches_bytes_that_no_text_can_spell() -> None:
    assert parse_pattern("x/*").matches(b"x/\xff\xfe")
    assert parse_pattern("**/*.pem").matches(b"x/\xff.pem")
    assert not parse_pattern("x/é").matches(b"x/\xe9")


@given(patterns, patterns)
def test_patterns_that_match_one_path_overlap(one: str, other: str) -> None:
    shared = [path for path in SHORT_PATHS if parse_pattern(one).matches(path) and parse_pattern(other).matches(path)]
    assert overlap(one, other) or not shared
    assert overlap(one, other) == overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("src/**", "src/a", True),
        ("src/**", "docs/**", False),
        ("**/key", "secrets/**", True),
        ("src/*.py", "src/a.md", False),
        ("src/*", "src/a/b", False),
        ("a/**/z", "a/b/**", True),
    ],
)
def test_plain_patterns_meet_exactly_where_they_can(one: str, other: str, meet: bool) -> None:
    assert overlap(one, other) == meet
