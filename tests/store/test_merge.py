from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from store.diff import diff_trees
from store.merge import MergedTree, merge_trees
from store.renames import compose_renames
from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, TreeEntry
from tests.store.forest import Forest, Spec, specs


def refuse_content(path: bytes, base: TreeEntry | None, ours: TreeEntry, theirs: TreeEntry) -> TreeEntry | None:
    return None


def join_content(path: bytes, base: TreeEntry | None, ours: TreeEntry, theirs: TreeEntry) -> TreeEntry | None:
    return TreeEntry(FILE, b"+".join(sorted([ours.content, theirs.content])))


class Case:
    """A base with two sides to merge."""

    def __init__(self, base: Mapping[bytes, Any] | None, ours: Mapping[bytes, Any], theirs: Mapping[bytes, Any]) -> None:
        self.forest = Forest()
        self.base = None if base is None else self.forest.plant(base)
        self.ours, self.theirs = self.forest.plant(ours), self.forest.plant(theirs)

    def merge(self, ours: Mapping[bytes, bytes] = {}, theirs: Mapping[bytes, bytes] = {}, combine: Any = refuse_content) -> MergedTree:
        return merge_trees(self.forest.read, self.forest.write, self.base, self.ours, self.theirs, combine, ours, theirs)

    def files(
        self, ours: Mapping[bytes, bytes] = {}, theirs: Mapping[bytes, bytes] = {}, combine: Any = refuse_content
    ) -> dict[bytes, bytes]:
        merged = self.merge(ours, theirs, combine)
        assert merged.conflicts == ()
        assert merged.root is not None
        return self.forest.files(merged.root)

    def conflicts(self, ours: Mapping[bytes, bytes] = {}, theirs: Mapping[bytes, bytes] = {}) -> list[tuple[bytes, str]]:
        merged = self.merge(ours, theirs)
        assert merged.root is None
        return [(conflict.path, conflict.why) for conflict in merged.conflicts]


# without renames: against an oracle over flat maps


def settle(base: Any, ours: Any, theirs: Any) -> tuple[Any, bool]:
    """Return the three-way choice and whether the sides disagree."""
    if theirs in (ours, base):
        return ours, False
    return theirs, ours != base


def combine_leaf(base: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None) -> tuple[TreeEntry | None, bool]:
    entry, disagree = settle(base, ours, theirs)
    if not disagree or base is None or ours is None or theirs is None:
        return entry, disagree
    mode, modes = settle(base.mode, ours.mode, theirs.mode)
    content, contents = settle(base.content, ours.content, theirs.content)
    links = {side.mode == SYMLINK for side in (base, ours, theirs)}
    return TreeEntry(mode, content), modes or contents or len(links) > 1


@given(specs, specs, specs)
@settings(max_examples=300)
def test_a_merge_without_renames_is_the_three_way_choice_of_every_path(one: Spec, two: Spec, three: Spec) -> None:
    case = Case(one, two, three)
    forest = case.forest
    assert case.base is not None
    leaves = [forest.leaves(root) for root in (case.base, case.ours, case.theirs)]
    folders = [forest.directories(root) for root in (case.base, case.ours, case.theirs)]
    expected, conflicts = {}, set()
    for path in set().union(*leaves):
        entry, disagree = combine_leaf(*(side.get(path) for side in leaves))
        if disagree:
            conflicts.add(path)
        if entry is not None:
            expected[path] = entry
    kept = {path for path in set().union(*folders) if settle(*(path in side for side in folders))[0]}
    held = {path[:end] for path in expected.keys() | kept for end in range(len(path)) if path[end : end + 1] == b"/"}
    merged = case.merge()
    clashes = expected.keys() & (kept | held)
    if conflicts or clashes:
        assert merged.root is None
        assert {conflict.path for conflict in merged.conflicts} >= conflicts
        assert {conflict.path for conflict in merged.conflicts} <= conflicts | clashes | {
            path for path in held if path in leaves[1] or path in leaves[2]
        }
    else:
        assert merged.conflicts == ()
        assert merged.root is not None
        assert forest.leaves(merged.root) == expected
        assert forest.directories(merged.root) == kept | held


@given(specs, specs, specs)
def test_a_merge_is_the_same_from_both_sides(one: Spec, two: Spec, three: Spec) -> None:
    here, there = Case(one, two, three).merge(), Case(one, three, two).merge()
    assert here.root == there.root
    assert [conflict.path for conflict in here.conflicts] == [conflict.path for conflict in there.conflicts]
    assert [(conflict.ours, conflict.theirs) for conflict in here.conflicts] == [(each.theirs, each.ours) for each in there.conflicts]


@given(specs, specs)
def test_merging_with_an_unchanged_side_gives_the_other(one: Spec, two: Spec) -> None:
    assert Case(one, two, one).merge().root == Case(one, one, two).merge().root == Case(one, two, two).merge().root == Forest().plant(two)


def test_only_directories_changed_on_both_sides_are_read() -> None:
    def wide(**changed: bytes) -> Spec:
        return {b"%d" % number: {b"%d" % below: changed.get(f"x{number}", b"x") for below in range(30)} for number in range(100)}

    case = Case(wide(), wide(x1=b"ours"), wide(x2=b"theirs"))
    case.forest.reads = 0
    assert case.merge().root == Case({}, {}, wide(x1=b"ours", x2=b"theirs")).merge().root
    assert case.forest.reads == 3


def test_nothing_is_written_when_there_is_a_conflict() -> None:
    case = Case({b"d": {b"f": b"0"}}, {b"d": {b"f": b"1", b"g": b"x"}}, {b"d": {b"f": b"2", b"h": b"y"}})
    before = len(case.forest.trees)
    assert case.conflicts() == [(b"d/f", "both sides changed it in ways that do not combine")]
    assert len(case.forest.trees) == before


def test_content_changed_on_both_sides_is_combined_by_the_given_function() -> None:
    case = Case({b"d": {b"f": b"0"}}, {b"d": {b"f": b"1"}}, {b"d": {b"f": b"2"}})
    assert case.files(combine=join_content) == {b"d/f": b"1+2"}


def test_a_mode_changed_here_and_content_changed_there_combine() -> None:
    case = Case({b"f": b"0"}, {b"f": TreeEntry(EXECUTABLE, b"0")}, {b"f": b"1"})
    merged = case.merge()
    assert merged.root is not None
    assert case.forest.leaves(merged.root) == {b"f": TreeEntry(EXECUTABLE, b"1")}


def test_a_combined_file_keeps_the_mode_that_one_side_gave_it() -> None:
    case = Case({b"f": b"0"}, {b"f": TreeEntry(EXECUTABLE, b"1")}, {b"f": b"2"})
    merged = case.merge(combine=join_content)
    assert merged.root is not None
    assert case.forest.leaves(merged.root) == {b"f": TreeEntry(EXECUTABLE, b"1+2")}


def test_symlinks_never_combine() -> None:
    case = Case({b"f": TreeEntry(SYMLINK, b"0")}, {b"f": TreeEntry(SYMLINK, b"1")}, {b"f": TreeEntry(SYMLINK, b"2")})
    assert case.merge(combine=join_content).root is None


def test_a_deletion_against_a_change_names_who_did_what() -> None:
    case = Case({b"f": b"0"}, {}, {b"f": b"1"})
    (conflict,) = case.merge().conflicts
    assert conflict == (b"f", TreeEntry(FILE, b"0"), None, TreeEntry(FILE, b"1"), "we deleted what they changed")


def test_a_file_against_a_directory_is_a_conflict() -> None:
    assert Case({}, {b"p": b"x"}, {b"p": {b"q": b"y"}}).conflicts() == [(b"p", "one side has a file here, the other a directory")]


def test_without_a_common_base_equal_files_agree_and_others_conflict() -> None:
    assert Case(None, {b"a": b"1", b"b": b"2"}, {b"a": b"1", b"c": b"3"}).files() == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert Case(None, {b"a": b"1"}, {b"a": b"2"}).conflicts() == [(b"a", "both sides added it with different content")]


# with renames


def test_an_edit_lands_at_the_new_name_whoever_renamed() -> None:
    case = Case({b"f": b"0"}, {b"g": b"0"}, {b"f": b"1"})
    assert case.files(ours={b"g": b"f"}) == {b"g": b"1"}
    assert Case({b"f": b"0"}, {b"f": b"1"}, {b"g": b"0"}).files(theirs={b"g": b"f"}) == {b"g": b"1"}


def test_everything_done_in_a_directory_follows_its_rename() -> None:
    base = {b"d": {b"edit": b"0", b"gone": b"0", b"same": b"0"}}
    theirs = {b"d": {b"edit": b"1", b"same": b"0", b"fresh": b"2", b"sub": {b"deep": b"3"}}}
    case = Case(base, {b"e": base[b"d"]}, theirs)
    assert case.files(ours={b"e": b"d"}) == {b"e/edit": b"1", b"e/same": b"0", b"e/fresh": b"2", b"e/sub/deep": b"3"}


def test_a_file_renamed_by_one_side_in_a_directory_renamed_by_the_other_does_both() -> None:
    case = Case({b"d": {b"x": b"0"}}, {b"e": {b"x": b"0"}}, {b"d": {b"y": b"1"}})
    assert case.files(ours={b"e": b"d"}, theirs={b"d/y": b"d/x"}) == {b"e/y": b"1"}


def test_swapped_names_stay_swapped_and_edits_follow_their_file() -> None:
    case = Case({b"a": b"A", b"b": b"B"}, {b"a": b"B", b"b": b"A"}, {b"a": b"A2", b"b": b"B"})
    assert case.files(ours={b"a": b"b", b"b": b"a"}) == {b"a": b"B", b"b": b"A2"}


def test_what_took_a_vacated_name_stays_there() -> None:
    case = Case({b"a": b"A"}, {b"a": b"fresh", b"b": b"A"}, {b"a": b"A2"})
    assert case.files(ours={b"b": b"a"}) == {b"a": b"fresh", b"b": b"A2"}


def test_a_directory_moved_into_one_of_its_own_former_name() -> None:
    case = Case({b"d": {b"f": b"0"}}, {b"d": {b"in": {b"f": b"0"}, b"top": b"t"}}, {b"d": {b"f": b"1", b"g": b"2"}})
    assert case.files(ours={b"d/in": b"d"}) == {b"d/in/f": b"1", b"d/in/g": b"2", b"d/top": b"t"}


def test_an_edit_follows_a_file_moved_out_of_a_deleted_directory_which_stays_deleted() -> None:
    case = Case({b"d": {b"x": b"0", b"y": b"0"}}, {b"z": b"0"}, {b"d": {b"x": b"1", b"y": b"0"}})
    merged = case.merge({b"z": b"d/x"})
    assert merged.root is not None
    assert case.forest.files(merged.root) == {b"z": b"1"}
    assert case.forest.directories(merged.root) == set()


def test_a_rename_onto_a_file_that_the_other_side_changed_is_a_conflict() -> None:
    case = Case({b"x": b"X", b"y": b"Y"}, {b"y": b"X"}, {b"x": b"X", b"y": b"Y2"})
    assert case.conflicts({b"y": b"x"}) == [(b"y", "we deleted what they changed")]


def test_both_renaming_alike_agree() -> None:
    case = Case({b"f": b"0"}, {b"g": b"0"}, {b"g": b"1"})
    assert case.files({b"g": b"f"}, {b"g": b"f"}) == {b"g": b"1"}


def test_both_renaming_differently_is_a_conflict_that_names_all() -> None:
    case = Case({b"f": b"0"}, {b"g": b"0"}, {b"h": b"0"})
    assert case.conflicts({b"g": b"f"}, {b"h": b"f"}) == [(b"g", "we renamed it to g, they renamed it to h")]


def test_a_rename_against_a_deletion_is_a_conflict() -> None:
    case = Case({b"f": b"0"}, {b"g": b"0"}, {})
    assert case.conflicts({b"g": b"f"}) == [(b"g", "we renamed it from f, they deleted it")]


def test_a_renamed_directory_against_its_deletion_is_a_conflict() -> None:
    case = Case({b"d": {b"f": b"0"}}, {}, {b"e": {b"f": b"0"}})
    assert case.conflicts(theirs={b"e": b"d"}) == [(b"e", "they renamed it from d, we deleted it")]


def test_a_rename_onto_what_the_other_side_added_is_a_conflict() -> None:
    case = Case({b"f": b"0"}, {b"g": b"0"}, {b"f": b"0", b"g": b"theirs"})
    assert case.conflicts({b"g": b"f"}) == [(b"g", "both sides added it with different content")]


def test_a_directory_renamed_onto_one_that_the_other_side_added_holds_both() -> None:
    case = Case({b"d": {b"f": b"0"}}, {b"e": {b"f": b"0"}}, {b"d": {b"f": b"1"}, b"e": {b"g": b"2"}})
    assert case.files({b"e": b"d"}) == {b"e/f": b"1", b"e/g": b"2"}


def test_two_files_renamed_to_one_name_are_a_conflict() -> None:
    case = Case({b"a": b"A", b"b": b"B"}, {b"c": b"A", b"b": b"B"}, {b"a": b"A", b"c": b"B"})
    assert case.conflicts({b"c": b"a"}, {b"c": b"b"}) == [(b"c", "both sides added it with different content")]


def test_directories_moved_below_each_other_are_a_conflict() -> None:
    case = Case(
        {b"a": {b"f": b"1"}, b"b": {b"g": b"2"}}, {b"b": {b"g": b"2", b"a": {b"f": b"1"}}}, {b"a": {b"f": b"1", b"b": {b"g": b"2"}}}
    )
    found = case.conflicts({b"b/a": b"a"}, {b"a/b": b"b"})
    assert [path for path, _ in found] == [b"a", b"b"]
    assert all("below" in why for _, why in found)


def test_a_file_moved_below_what_the_other_side_made_a_file_is_a_conflict() -> None:
    case = Case({b"d": {}, b"f": b"0"}, {b"d": {b"g": b"0"}}, {b"d": b"file", b"f": b"0"})
    assert any(path.startswith(b"d") for path, _ in case.conflicts({b"d/g": b"f"}))


def test_claimed_renames_of_what_is_not_there_are_additions_and_deletions() -> None:
    case = Case({b"a": b"1"}, {b"a": b"1", b"b": b"2"}, {b"a": b"3"})
    assert case.files({b"b": b"nowhere", b"gone": b"a"}) == {b"a": b"3", b"b": b"2"}


class Grower:
    """A side that grows from a base by random work, recording renames as they happen; every write has content of its own."""

    def __init__(self, label: bytes, tree: Spec, stem: bytes = b"r") -> None:
        self.label, self.tree, self.stem, self.count = label, tree, stem, 0
        self.renames: dict[bytes, bytes] = {}

    def paths(self, tree: Spec | None = None, prefix: bytes = b"") -> list[bytes]:
        found = []
        for name, part in sorted((self.tree if tree is None else tree).items()):
            found.append(prefix + name)
            if isinstance(part, dict):
                found.extend(self.paths(part, prefix + name + b"/"))
        return found

    def folder(self, path: bytes) -> Spec:
        folder = self.tree
        for name in path.split(b"/")[:-1]:
            folder = folder[name]
        return folder

    def work(self, draw: st.DataObject) -> None:
        paths = self.paths()
        if not paths:
            return
        path = draw.draw(st.sampled_from(paths))
        action = draw.draw(st.sampled_from(["write", "rename", "rename", "delete", "add"]))
        name = path.split(b"/")[-1]
        part = self.folder(path)[name]
        self.count += 1
        if action == "delete":
            del self.folder(path)[name]
        elif action == "write" and isinstance(part, bytes):
            self.folder(path)[name] = b"%s%d" % (self.label, self.count)
        elif action == "add" and isinstance(part, dict):
            part[b"n%d" % self.count] = b"%s%d" % (self.label, self.count)
        elif action == "rename":
            self.rename(
                path,
                draw.draw(
                    st.sampled_from([b"", *[each + b"/" for each in paths if isinstance(self.folder(each)[each.split(b"/")[-1]], dict)]])
                ),
            )

    def rename(self, path: bytes, folder: bytes) -> None:
        target = folder + b"%s%d" % (self.stem, self.count)
        if (folder + b"/").startswith(path + b"/"):
            return
        part = self.folder(path).pop(path.split(b"/")[-1])
        self.folder(target)[target.split(b"/")[-1]] = part
        self.renames = compose_renames(self.renames, {target: path})


def copy(tree: Spec) -> Spec:
    return {name: copy(part) if isinstance(part, dict) else part for name, part in tree.items()}


BASE: Spec = {b"a": {b"x": b"ax", b"y": b"ay", b"s": {b"z": b"asz"}}, b"b": {b"x": b"bx"}, b"f": b"f", b"g": b"g"}


@given(st.data(), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=250, deadline=None)
def test_with_any_renames_every_content_is_kept_or_deleted_as_a_side_said_or_there_is_a_conflict(
    draw: st.DataObject, mine: int, other: int
) -> None:
    ours, theirs = Grower(b"o", copy(BASE)), Grower(b"t", copy(BASE))
    for _ in range(mine):
        ours.work(draw)
    for _ in range(other):
        theirs.work(draw)
    case, back = Case(BASE, ours.tree, theirs.tree), Case(BASE, theirs.tree, ours.tree)
    assert case.base is not None
    merged, reverse = case.merge(ours.renames, theirs.renames), back.merge(theirs.renames, ours.renames)
    assert (merged.root is None) == (reverse.root is None)
    if merged.root is None:
        assert merged.conflicts
        return
    assert merged.root == reverse.root
    before, here, there = (set(case.forest.files(root).values()) for root in (case.base, case.ours, case.theirs))
    contents = sorted(case.forest.files(merged.root).values())
    assert contents == sorted(
        content for content in before | here | there if settle(content in before, content in here, content in there)[0]
    )


@given(st.data(), st.integers(0, 6))
@settings(max_examples=250, deadline=None)
def test_a_side_that_only_edits_in_place_never_undoes_the_other_sides_names(draw: st.DataObject, steps: int) -> None:
    ours = Grower(b"o", copy(BASE))
    for _ in range(steps):
        ours.work(draw)
    theirs = copy(BASE)
    theirs[b"g"] = b"edited"
    case = Case(BASE, ours.tree, theirs)
    merged = case.merge(ours.renames)
    if merged.root is not None:
        assert case.forest.files(merged.root).keys() == case.forest.files(case.ours).keys()
        assert case.forest.directories(merged.root) == case.forest.directories(case.ours)


def test_a_merged_directory_entry_is_a_directory() -> None:
    case = Case({b"d": {b"a": b"0", b"b": b"0"}}, {b"d": {b"a": b"1", b"b": b"0"}}, {b"d": {b"a": b"0", b"b": b"1"}})
    merged = case.merge()
    assert merged.root is not None
    assert case.forest.read(merged.root)[b"d"].mode == DIRECTORY


def test_a_merge_tells_what_it_renamed_on_each_side() -> None:
    case = Case({b"d": {b"x": b"0"}, b"f": b"1"}, {b"e": {b"x": b"0"}, b"f": b"1"}, {b"d": {b"x": b"0"}, b"g": b"1"})
    merged = case.merge({b"e": b"d"}, {b"g": b"f"})
    assert merged.renames_from_ours == {b"g": b"f"}
    assert merged.renames_from_theirs == {b"e": b"d"}


def test_a_side_that_did_nothing_takes_over_the_others_renames() -> None:
    case = Case({b"f": b"1"}, {b"f": b"1"}, {b"g": b"1"})
    assert case.merge(theirs={b"g": b"f"}).renames_from_ours == {b"g": b"f"}
    assert Case({b"f": b"1"}, {b"g": b"1"}, {b"f": b"1"}).merge({b"g": b"f"}).renames_from_theirs == {b"g": b"f"}


@given(st.data(), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=250, deadline=None)
def test_the_renames_of_a_merge_account_for_everything_it_moved(draw: st.DataObject, mine: int, other: int) -> None:
    ours, theirs = Grower(b"o", copy(BASE), b"left"), Grower(b"t", copy(BASE), b"right")
    for _ in range(mine):
        ours.work(draw)
    for _ in range(other):
        theirs.work(draw)
    case = Case(BASE, ours.tree, theirs.tree)
    merged = case.merge(ours.renames, theirs.renames)
    if merged.root is None:
        return
    kept = set(case.forest.files(merged.root).values())
    for renames, side in ((merged.renames_from_ours, case.ours), (merged.renames_from_theirs, case.theirs)):
        deleted = {each.old.content for each in diff_trees(case.forest.read, side, merged.root, renames) if each.new is None and each.old}
        assert not deleted & kept
