"""Leaving paths out of trees, putting them back, and telling what a commit touches itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import NotEmpty, TooLarge
from store.partial import DEEPEST, graft_tree, list_introduced, select_tree
from store.trees import DIRECTORY, FILE, TreeEntry, edit_tree, find_entry, walk_entries
from tests.store.forest import Forest, Spec, leaf_entries, specs


class Hiding:
    """Keeps every path but some; directories are not known to be whole unless asked so."""

    def __init__(self, hidden: set[bytes], *, shortcuts: bool = False) -> None:
        self.hidden = hidden
        self.shortcuts = shortcuts

    def _hides(self, path: bytes) -> bool:
        return any(path == each or path.startswith(each + b"/") for each in self.hidden)

    def keeps(self, directory: bytes, name: bytes) -> bool:
        return not self._hides(directory + b"/" + name if directory else name)

    def keeps_all(self, directory: bytes) -> bool:
        return self.shortcuts and not any(each.startswith(directory + b"/") or not directory for each in self.hidden | {directory})

    def keeps_none(self, directory: bytes) -> bool:
        return self.shortcuts and self._hides(directory)


class Remembering:
    """A memory that can be looked into."""

    def __init__(self) -> None:
        self.known: dict[tuple[bytes, bytes], bytes | None] = {}

    def find(self, directory: bytes, content: bytes) -> tuple[bytes | None] | None:
        return (self.known[directory, content],) if (directory, content) in self.known else None

    def put(self, directory: bytes, content: bytes, kept: bytes | None) -> None:
        self.known[directory, content] = kept


paths = st.lists(st.sampled_from([b"a", b"b", b"c", b"\xff"]), min_size=1, max_size=3).map(b"/".join)
hiding = st.sets(paths, max_size=3)


def select(forest: Forest, root: bytes, hidden: set[bytes], memory: Remembering | None = None, *, shortcuts: bool = False) -> bytes:
    return select_tree(forest.read, forest.write, root, Hiding(hidden, shortcuts=shortcuts), memory or Remembering())


@given(specs, hiding)
def test_a_selection_holds_what_is_kept_and_no_name_of_anything_else(spec: Spec, hidden: set[bytes]) -> None:
    forest = Forest()
    root = forest.plant(spec)
    keep = Hiding(hidden)
    expected = {path: entry for path, entry in forest.leaves(root).items() if keep.keeps(*_split(path))}
    selected = select(forest, root, hidden)
    assert forest.leaves(selected) == expected
    assert not any(Hiding(hidden).keeps(*_split(path)) is False for path in forest.directories(selected))


def _split(path: bytes) -> tuple[bytes, bytes]:
    directory, _, name = path.rpartition(b"/")
    return directory, name


@given(specs)
def test_a_tree_of_which_everything_is_kept_is_itself(spec: Spec) -> None:
    forest = Forest()
    root = forest.plant(spec)
    assert select(forest, root, set()) == root


@given(specs, hiding)
def test_shortcuts_and_memory_change_what_is_read_and_nothing_else(spec: Spec, hidden: set[bytes]) -> None:
    forest, memory = Forest(), Remembering()
    root = forest.plant(spec)
    expected = select(forest, root, hidden)
    assert select(forest, root, hidden, memory) == expected
    before = forest.reads
    assert select(forest, root, hidden, memory) == expected
    assert forest.reads == before
    assert forest.leaves(select(forest, root, hidden, shortcuts=True)) == forest.leaves(expected)


@given(specs, hiding)
def test_grafting_a_selection_onto_its_origin_gives_the_origin(spec: Spec, hidden: set[bytes]) -> None:
    forest = Forest()
    root = forest.plant(spec)
    selected = select(forest, root, hidden)
    assert forest.leaves(graft_tree(forest.read, forest.write, selected, selected, root)) == forest.leaves(root)


@given(specs, hiding, st.dictionaries(paths, leaf_entries | st.none(), max_size=4))
def test_what_was_made_of_a_selection_shows_again_and_what_was_left_out_stays(
    spec: Spec, hidden: set[bytes], edits: dict[bytes, TreeEntry | None]
) -> None:
    forest = Forest()
    root = forest.plant(spec)
    keep = Hiding(hidden)
    selected = select(forest, root, hidden)
    seen = {path: entry for path, entry in edits.items() if keep.keeps(*_split(path))}
    edited = select(forest, edit_tree(forest.read, forest.write, selected, seen), hidden)
    try:
        whole = graft_tree(forest.read, forest.write, edited, selected, root)
    except NotEmpty:
        return
    left_out = {path: entry for path, entry in forest.leaves(root).items() if path not in forest.leaves(selected)}
    assert forest.leaves(whole) == forest.leaves(edited) | left_out


def test_a_file_cannot_take_the_place_of_a_directory_of_which_a_part_is_left_out() -> None:
    forest = Forest()
    root = forest.plant({b"a": {b"b": b"1", b"c": b"2"}})
    selected = select(forest, root, {b"a/c"})
    edited = edit_tree(forest.read, forest.write, selected, {b"a": TreeEntry(FILE, b"3")})
    with pytest.raises(NotEmpty):
        graft_tree(forest.read, forest.write, edited, selected, root)


def test_a_directory_that_was_removed_keeps_what_was_left_out_of_it() -> None:
    forest = Forest()
    root = forest.plant({b"a": {b"b": b"1", b"c": b"2"}})
    selected = select(forest, root, {b"a/c"})
    edited = edit_tree(forest.read, forest.write, selected, {b"a": None})
    assert forest.files(graft_tree(forest.read, forest.write, edited, selected, root)) == {b"a/c": b"2"}


def test_directories_nested_too_deep_are_refused() -> None:
    forest = Forest()
    content = forest.plant({b"f": b"1"})
    for _ in range(DEEPEST + 2):
        content = forest.plant({b"d": TreeEntry(DIRECTORY, content)})
    with pytest.raises(TooLarge):
        select(forest, content, {b"nothing"})


@given(specs, st.lists(specs, max_size=2))
def test_what_is_introduced_is_what_differs_from_every_parent(spec: Spec, befores: list[Spec]) -> None:
    forest = Forest()
    tree, parents = forest.plant(spec), [forest.plant(before) for before in befores]
    every = {path for root in (tree, *parents) for path, _ in walk_entries(forest.read, root)}
    now = forest.leaves(tree)

    def holds(root: bytes, path: bytes) -> TreeEntry | None:
        entry = find_entry(forest.read, root, path)
        return None if entry is None or entry.mode == DIRECTORY else entry

    introduced = {each.path: each.entry for each in list_introduced(forest.read, tree, parents) if not _is_directory(each.entry)}
    differing = {path for path in every if not any(holds(parent, path) == now.get(path) for parent in parents)}
    expected = {path: now.get(path) for path in differing} if parents else now
    assert {path: entry for path, entry in expected.items() if path not in introduced} == {}
    assert {path: entry for path, entry in introduced.items() if (path, entry) not in expected.items()} == {}


def _is_directory(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.mode == DIRECTORY


def test_an_empty_directory_is_introduced_and_a_full_one_is_not() -> None:
    forest = Forest()
    tree = forest.plant({b"empty": {}, b"full": {b"f": b"1"}})
    assert {each.path for each in list_introduced(forest.read, tree, ())} == {b"empty", b"full/f"}
