from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from trust.policy.classes import name_classes, path_classes
from trust.policy.patterns import PathSet, path_set

names = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name not in {".", ".."})
forms = st.text("ab*?", min_size=1, max_size=4).filter(lambda form: "**" not in form)
segments = st.one_of(names, forms, st.just("**"), st.just("*"))


def is_plain(segments: Sequence[str]) -> bool:
    return not any(one == other == "**" for one, other in itertools.pairwise(segments))


patterns = st.lists(segments, min_size=1, max_size=4).filter(is_plain).map("/".join)
sets = st.lists(st.lists(patterns, min_size=1, max_size=3).map(lambda texts: path_set(tuple(texts))), max_size=4)
name_sets = st.lists(st.lists(names | forms, min_size=1, max_size=3).map(lambda texts: path_set(tuple(texts))), max_size=4)
paths = st.lists(st.text("abc.", min_size=1, max_size=4).filter(lambda name: name not in {".", ".."}), max_size=5).map("/".join)


def bits(sets: Sequence[PathSet], path: bytes) -> int:
    return sum(1 << index for index, each in enumerate(sets) if each.matches(path))


@given(sets, paths)
def test_every_path_is_in_a_class_and_every_witness_in_its_own(sets: list[PathSet], path: str) -> None:
    classes = path_classes(sets)
    assert classes.complete
    assert all(bits(sets, witness) == found for witness, found in classes.members)
    assert bits(sets, path.encode()) in {found for _, found in classes.members}


@given(name_sets, st.text("abc.?*", min_size=1, max_size=5).filter(lambda name: name not in {".", ".."}))
def test_every_name_is_in_a_class_and_every_witness_in_its_own(sets: list[PathSet], name: str) -> None:
    classes = name_classes(sets)
    assert all(bits(sets, witness) == found for witness, found in classes.members)
    assert bits(sets, name.encode()) in {found for _, found in classes.members}
    assert all(witness not in {b"", b".", b".."} for witness, _ in classes.members)


def test_a_name_that_is_no_text_is_in_the_class_of_what_no_pattern_spells() -> None:
    sets = [path_set(("a*", "x")), path_set(("?",))]
    assert bits(sets, b"\xff") in {found for _, found in name_classes(sets).members}


def test_a_witness_is_a_shortest_one() -> None:
    classes = path_classes([path_set(("src/**",)), path_set(("**/*.pem",))])
    assert dict((found, witness) for witness, found in classes.members) == {0: b"x", 1: b"src", 2: b".pem", 3: b"src/.pem"}


def test_a_walk_that_is_cut_says_so() -> None:
    wide = [path_set((f"{letter}/**/*{letter}*/**",)) for letter in "abcdefgh"]
    cut = path_classes(wide, limit=50)
    assert not cut.complete and all(bits(wide, witness) == found for witness, found in cut.members)
