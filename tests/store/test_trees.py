from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store.trees import DIRECTORY, FILE, Draft, TreeEntry, edit_tree, find_entry, walk_entries
from tests.store.forest import Forest, Spec, leaf_entries, specs

X = TreeEntry(FILE, b"x")


def test_an_entry_is_found_by_its_path_and_nothing_below_a_file() -> None:
    forest = Forest()
    root = forest.plant({b"a": {b"b": b"x"}})
    assert find_entry(forest.read, root, b"a/b") == X
    assert find_entry(forest.read, root, b"a/b/c") is None
    assert find_entry(forest.read, root, b"z/b") is None
    assert find_entry(forest.read, root, b"") == TreeEntry(DIRECTORY, root)


def test_a_walk_gives_directories_before_what_they_hold_in_order() -> None:
    forest = Forest()
    root = forest.plant({b"a": {b"y": b"1", b"b": {}}, b"a.c": b"2"})
    assert [path for path, _ in walk_entries(forest.read, root)] == [b"a", b"a.c", b"a/b", b"a/y"]


def test_an_edit_replaces_a_directory_by_a_file_and_back() -> None:
    forest = Forest()
    root = forest.plant({b"a": {b"b": b"x"}})
    flat = edit_tree(forest.read, forest.write, root, {b"a": TreeEntry(FILE, b"f")})
    assert forest.files(flat) == {b"a": b"f"}
    assert forest.files(edit_tree(forest.read, forest.write, flat, {b"a": None, b"a/b": X})) == {b"a/b": b"x"}


def test_a_directory_stays_when_its_last_entry_goes() -> None:
    forest = Forest()
    root = edit_tree(forest.read, forest.write, forest.plant({b"d": {b"f": b"x"}}), {b"d/f": None})
    assert forest.directories(root) == {b"d"}


def test_a_cut_part_can_be_placed_elsewhere_whole() -> None:
    forest = Forest()
    draft = Draft(forest.read, forest.plant({b"d": {b"f": b"x"}}))
    draft.place(b"d/g", X)
    part = draft.cut(b"d")
    assert part is not None
    draft.place(b"e/below", part)
    assert forest.files(draft.freeze(forest.write)) == {b"e/below/f": b"x", b"e/below/g": b"x"}


def test_a_file_in_the_way_is_named() -> None:
    forest = Forest()
    draft = Draft(forest.read, forest.plant({b"d": {b"f": b"x"}}))
    assert draft.blocked(b"d/f/g/h") == b"d/f"
    assert draft.blocked(b"d/g/h") is None


@given(specs, st.dictionaries(st.sampled_from([b"a", b"b", b"c"]), leaf_entries | st.none()))
def test_an_edit_does_what_a_dictionary_does_and_leaves_the_old_tree(spec: Spec, edits: dict[bytes, TreeEntry | None]) -> None:
    forest = Forest()
    root = forest.plant(spec)
    before = forest.leaves(root)
    expected = {path: entry for path, entry in before.items() if path.split(b"/")[0] not in edits}
    expected |= {path: entry for path, entry in edits.items() if entry is not None}
    assert forest.leaves(edit_tree(forest.read, forest.write, root, edits)) == expected
    assert forest.leaves(root) == before
