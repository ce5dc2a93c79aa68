from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store.renames import compose_renames, detect_renames, translate_path
from store.trees import DIRECTORY, FILE, TreeEntry


def file(content: bytes) -> TreeEntry:
    return TreeEntry(FILE, content)


def test_a_directory_pair_covers_everything_below_and_a_longer_pair_wins() -> None:
    renames = {b"new": b"old", b"new/a": b"elsewhere"}
    assert translate_path(renames, b"new/x/y") == b"old/x/y"
    assert translate_path(renames, b"new/a/y") == b"elsewhere/y"
    assert translate_path(renames, b"newer/x") == b"newer/x"


def test_two_renames_in_a_row_are_one() -> None:
    assert compose_renames({b"b": b"a"}, {b"c": b"b"}) == {b"c": b"a"}


def test_a_rename_back_is_none() -> None:
    assert compose_renames({b"b": b"a"}, {b"a": b"b"}) == {}


def test_a_file_renamed_in_a_renamed_directory_keeps_both() -> None:
    assert compose_renames({b"e": b"d"}, {b"e/y": b"e/x"}) == {b"e": b"d", b"e/y": b"d/x"}
    assert compose_renames({b"d/y": b"d/x"}, {b"e": b"d"}) == {b"e": b"d", b"e/y": b"d/x"}


def test_what_stays_behind_when_its_directory_is_renamed_is_remembered() -> None:
    assert compose_renames({b"e": b"d"}, {b"d/k": b"e/k"}) == {b"e": b"d", b"d/k": b"d/k"} or compose_renames(
        {b"e": b"d"}, {b"d/k": b"e/k"}
    ) == {b"e": b"d"}


class Walker:
    """Names of nodes that are renamed at random; knows where each came from."""

    def __init__(self) -> None:
        self.origin = {b"a": b"a", b"b": b"b", b"c": b"c"}

    def swap(self, one: bytes, other: bytes) -> dict[bytes, bytes]:
        self.origin[one], self.origin[other] = self.origin[other], self.origin[one]
        return {one: other, other: one} if one != other else {}


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([b"a", b"b", b"c"]))))
def test_composition_follows_each_node_through_any_number_of_swaps(swaps: list[tuple[bytes, bytes]]) -> None:
    walker = Walker()
    renames: dict[bytes, bytes] = {}
    for one, other in swaps:
        renames = compose_renames(renames, walker.swap(one, other))
    assert {name: translate_path(renames, name) for name in walker.origin} == walker.origin


def test_equal_content_is_a_rename_and_the_same_last_name_comes_first() -> None:
    deleted = [(b"one/x", file(b"same")), (b"two/y", file(b"same"))]
    added = [(b"new/y", file(b"same")), (b"new/z", file(b"same"))]
    assert detect_renames(deleted, added) == {b"new/y": b"two/y", b"new/z": b"one/x"}


def test_each_deleted_file_is_used_once_and_directories_never() -> None:
    deleted = [(b"a", file(b"same")), (b"d", TreeEntry(DIRECTORY, b"t"))]
    added = [(b"b", file(b"same")), (b"c", file(b"same")), (b"e", TreeEntry(DIRECTORY, b"t"))]
    assert detect_renames(deleted, added) == {b"b": b"a"}


def test_similar_content_is_a_rename_above_the_threshold_best_first() -> None:
    scores = {(b"1", b"x"): 0.9, (b"1", b"y"): 0.95, (b"2", b"x"): 0.6, (b"2", b"y"): 0.1}
    deleted, added = [(b"a", file(b"1")), (b"b", file(b"2"))], [(b"p", file(b"x")), (b"q", file(b"y"))]
    found = detect_renames(deleted, added, lambda old, new: scores[old.content, new.content])
    assert found == {b"q": b"a", b"p": b"b"}
    assert detect_renames(deleted, added, lambda old, new: scores[old.content, new.content], threshold=0.7) == {b"q": b"a"}


def test_too_many_pairs_are_not_compared() -> None:
    deleted, added = [(b"a", file(b"1"))], [(b"p", file(b"x"))]
    assert detect_renames(deleted, added, lambda old, new: 1.0, limit=0) == {}
