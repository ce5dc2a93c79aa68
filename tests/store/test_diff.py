from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store.diff import Difference, diff_trees
from store.model import ChangeKind
from store.trees import DIRECTORY, FILE, TreeEntry, edit_tree
from tests.store.forest import Forest, Spec, specs


def shorthand(differences: list[Difference]) -> list[tuple[str, bytes, bytes | None]]:
    return [(difference.kind.value, difference.path, difference.origin) for difference in differences]


@given(specs, specs)
def test_a_diff_lists_exactly_the_paths_that_differ(one: Spec, other: Spec) -> None:
    forest = Forest()
    old, new = forest.plant(one), forest.plant(other)
    before, after = forest.leaves(old), forest.leaves(new)
    found = {difference.path: (difference.old, difference.new) for difference in diff_trees(forest.read, old, new)}
    leaves = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    came, went = forest.directories(new) - forest.directories(old), forest.directories(old) - forest.directories(new)
    empty = TreeEntry(DIRECTORY, forest.write({}))
    was_hollow, is_hollow = _hollow(forest, old) & went, _hollow(forest, new) & came
    for path, (was, now) in found.items():
        assert was == before.get(path, empty if path in was_hollow else None)
        assert now == after.get(path, empty if path in is_hollow else None)
    assert found.keys() == leaves | was_hollow | is_hollow
    assert bool(found) == (old != new)


def _hollow(forest: Forest, root: bytes) -> set[bytes]:
    directories = forest.directories(root)
    paths = forest.leaves(root).keys() | directories
    return {path for path in directories if not any(other.startswith(path + b"/") for other in paths)}


@given(specs, specs)
def test_applying_a_diff_to_the_old_tree_gives_the_files_of_the_new_one(one: Spec, other: Spec) -> None:
    forest = Forest()
    old, new = forest.plant(one), forest.plant(other)
    edits = {difference.path: difference.new for difference in diff_trees(forest.read, old, new)}
    assert forest.leaves(edit_tree(forest.read, forest.write, old, edits)) == forest.leaves(new)


@given(specs, specs)
def test_a_diff_backwards_swaps_the_sides(one: Spec, other: Spec) -> None:
    forest = Forest()
    old, new = forest.plant(one), forest.plant(other)
    forwards = [(difference.path, difference.old, difference.new) for difference in diff_trees(forest.read, old, new)]
    backwards = [(difference.path, difference.new, difference.old) for difference in diff_trees(forest.read, new, old)]
    assert forwards == backwards


def test_nothing_is_read_below_equal_content() -> None:
    forest = Forest()
    wide: Spec = {b"%d" % number: {b"%d" % below: b"x" for below in range(50)} for number in range(50)}
    old = forest.plant(wide)
    wide[b"7"][b"7"] = b"y"
    new = forest.plant(wide)
    forest.reads = 0
    assert shorthand(diff_trees(forest.read, old, new)) == [("modified", b"7/7", None)]
    assert forest.reads <= 4


def test_the_empty_tree_is_none() -> None:
    forest = Forest()
    root = forest.plant({b"a": b"1", b"d": {}})
    assert shorthand(diff_trees(forest.read, None, root)) == [("added", b"a", None), ("added", b"d", None)]
    assert shorthand(diff_trees(forest.read, root, None)) == [("deleted", b"a", None), ("deleted", b"d", None)]


def test_a_file_replaced_by_an_empty_directory_is_one_modification() -> None:
    forest = Forest()
    found = diff_trees(forest.read, forest.plant({b"p": b"x"}), forest.plant({b"p": {}}))
    assert [(each.kind, each.path, each.old and each.old.mode, each.new and each.new.mode) for each in found] == [
        (ChangeKind.MODIFIED, b"p", FILE, DIRECTORY)
    ]


def test_a_renamed_directory_covers_what_is_below_it_with_its_edits() -> None:
    forest = Forest()
    old = forest.plant({b"d": {b"f": b"1", b"g": b"2"}})
    new = forest.plant({b"e": {b"f": b"1", b"g": b"changed", b"h": b"3"}})
    found = diff_trees(forest.read, old, new, {b"e": b"d"})
    assert shorthand(found) == [("renamed", b"e/f", b"d/f"), ("renamed", b"e/g", b"d/g"), ("added", b"e/h", None)]
    assert found[1].old == TreeEntry(FILE, b"2")


def test_swapped_names_are_two_renames() -> None:
    forest = Forest()
    old, new = forest.plant({b"a": b"1", b"b": b"2"}), forest.plant({b"a": b"2", b"b": b"1"})
    assert shorthand(diff_trees(forest.read, old, new, {b"a": b"b", b"b": b"a"})) == [("renamed", b"a", b"b"), ("renamed", b"b", b"a")]


def test_a_rename_onto_a_file_shows_what_happened_to_each_name() -> None:
    forest = Forest()
    old, new = forest.plant({b"a": b"1", b"b": b"2"}), forest.plant({b"b": b"1"})
    assert shorthand(diff_trees(forest.read, old, new, {b"b": b"a"})) == [("deleted", b"a", None), ("modified", b"b", None)]


def test_a_chain_of_renames_onto_each_other_falls_with_its_first_link() -> None:
    forest = Forest()
    old, new = forest.plant({b"a": b"1", b"b": b"2", b"c": b"3"}), forest.plant({b"b": b"1", b"c": b"2"})
    renames = {b"b": b"a", b"c": b"b"}
    assert [kind for kind, _, _ in shorthand(diff_trees(forest.read, old, new, renames))] == ["deleted", "modified", "modified"]


def test_a_name_vacated_and_taken_again_is_a_rename_and_an_addition() -> None:
    forest = Forest()
    old, new = forest.plant({b"a": b"1"}), forest.plant({b"a": b"fresh", b"b": b"1"})
    assert shorthand(diff_trees(forest.read, old, new, {b"b": b"a"})) == [("added", b"a", None), ("renamed", b"b", b"a")]


def test_an_old_path_that_still_holds_what_it_held_was_copied_not_renamed() -> None:
    forest = Forest()
    old, new = forest.plant({b"a": b"1"}), forest.plant({b"a": b"1", b"b": b"1"})
    assert shorthand(diff_trees(forest.read, old, new, {b"b": b"a"})) == [("added", b"b", None)]


def test_a_pair_of_its_own_wins_over_the_directory_above() -> None:
    forest = Forest()
    old = forest.plant({b"d": {b"x": b"1"}})
    new = forest.plant({b"e": {b"x": b"fresh"}, b"z": b"1"})
    found = shorthand(diff_trees(forest.read, old, new, {b"e": b"d", b"z": b"d/x"}))
    assert found == [("added", b"e/x", None), ("renamed", b"z", b"d/x")]


@given(specs, specs, st.dictionaries(st.sampled_from([b"a", b"b", b"a/b", b"c"]), st.sampled_from([b"a", b"b", b"a/b", b"c"])))
def test_whatever_renames_are_claimed_every_changed_entry_is_told_once(one: Spec, other: Spec, renames: dict[bytes, bytes]) -> None:
    forest = Forest()
    old, new = forest.plant(one), forest.plant(other)
    plain = diff_trees(forest.read, old, new)
    told = diff_trees(forest.read, old, new, renames)
    went = {difference.path: difference.old for difference in plain if difference.old}
    came = {difference.path: difference.new for difference in plain if difference.new}
    assert {difference.origin or difference.path: difference.old for difference in told if difference.old} == went
    assert {difference.path: difference.new for difference in told if difference.new} == came
    assert sum(difference.old is not None for difference in told) == len(went)
