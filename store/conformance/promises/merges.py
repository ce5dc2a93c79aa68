"""Promises about merges, and about taking work back."""

from __future__ import annotations

from collections.abc import Callable

from store.conformance.bench import UNKNOWN, Bench, move, put_file, remove, same, see_files, see_tree
from store.model import CommitId

Edit = Callable[[dict[bytes, bytes | None]], CommitId]
"""Commits changes of files (None removes one) to one branch."""


def _fork(bench: Bench, files: dict[bytes, bytes]) -> tuple[CommitId, Edit, Edit]:
    """Return a base commit and an edit for each of the branches ``main`` and ``side``."""
    main, base = bench.grow(files)
    side = bench.start("side", base)

    def change(name: str) -> Edit:
        working = main if name == "main" else side

        def commit(edits: dict[bytes, bytes | None]) -> CommitId:
            for path, content in edits.items():
                if content is None:
                    remove(working, path)
                else:
                    put_file(working, path, content)
            return bench.commit(name).id

        return commit

    return base, change("main"), change("side")


def a_merge_combines_both_sides_with_both_parents(bench: Bench) -> None:
    """Different files, different lines of one file, a mode against content; never a fast-forward."""
    text = b"1\n2\n3\n4\n5\n6\n7\n"
    base, ours, theirs = _fork(bench, {b"t": text, b"o": b"o", b"s": b"s", b"gone": b"g"})
    head = ours({b"t": text.replace(b"1", b"one"), b"o": b"O"})
    source = theirs({b"t": text.replace(b"7", b"seven"), b"s": b"S", b"gone": None, b"d/new": b"n"})
    same(bench.engine.try_merge(head, source).commit, head, "the trial")
    merged = bench.engine.merge("main", head, source, bench.note("merge")).commit or UNKNOWN
    expected = {b"t": b"one\n2\n3\n4\n5\n6\nseven\n", b"o": b"O", b"s": b"S", b"d/new": b"n"}
    same(see_files(bench.engine.view(merged)), expected, "the merged tree")
    same(see_files(bench.engine.working("main")), expected, "the working layer after the merge")
    same(bench.engine.working("main").changes(), [], "uncommitted changes after the merge")
    commit = bench.engine.read_commit(merged)
    same((commit.parents, commit.note.message), ((head, source), "merge"), "the merge commit")
    same(bench.engine.branch("main").head, merged, "the head")
    same(bench.engine.merge("main", merged, source, bench.note()).commit, merged, "merging it again")
    forward = bench.engine.merge("side", source, merged, bench.note()).commit or UNKNOWN
    same(bench.engine.read_commit(forward).parents, (source, merged), "a merge that could be a fast-forward")
    same(bench.engine.merge_base(forward, merged), merged, "the common ancestor after merging")
    same(bench.engine.is_ancestor(base, forward), True, "ancestry through merges")


def conflicts_name_every_path_and_change_nothing(bench: Bench) -> None:
    """Content, deletion against change, file against directory, binary."""
    _, ours, theirs = _fork(bench, {b"t": b"0\n", b"del": b"0", b"bin": b"\0000", b"fine": b"0"})
    head = ours({b"t": b"1\n", b"del": None, b"bin": b"\0001", b"p": b"file"})
    source = theirs({b"t": b"2\n", b"del": b"2", b"bin": b"\0002", b"p/q": b"below", b"fine": b"2"})
    for merged in (bench.engine.try_merge(head, source), bench.engine.merge("main", head, source, bench.note())):
        same(merged.commit, None, "the conflicting merge")
        same([each.path for each in merged.conflicts], [b"bin", b"del", b"p", b"t"], "the conflicts")
        same(all(each.why for each in merged.conflicts), True, "each conflict says why")
        deleted = merged.conflicts[1]
        same((deleted.base is None, deleted.ours, deleted.theirs is None), (False, None, False), "the sides of a deletion")
    same(bench.engine.branch("main").head, head, "the head after conflicts")
    same(
        see_files(bench.engine.working("main")), {b"t": b"1\n", b"bin": b"\0001", b"p": b"file", b"fine": b"0"}, "the tree after conflicts"
    )


def edits_follow_renames_through_merges(bench: Bench) -> None:
    """A renamed directory, edited and added to by the other side; and again after the first merge."""
    base, _, _ = _fork(bench, {b"d/f": b"1", b"d/g": b"1", b"other": b"1"})
    late = bench.start("late", base)
    main, side = bench.engine.working("main"), bench.engine.working("side")
    move(main, b"d", b"e")
    head = bench.commit("main").id
    put_file(side, b"d/f", b"edited")
    put_file(side, b"d/h", b"added")
    head = bench.engine.merge("main", head, bench.commit("side").id, bench.note()).commit or UNKNOWN
    same(see_files(bench.engine.view(head)), {b"e/f": b"edited", b"e/g": b"1", b"e/h": b"added", b"other": b"1"}, "the first merge")
    put_file(late, b"d/g", b"late")
    move(late, b"other", b"d/other")
    merged = bench.engine.merge("main", head, bench.commit("late").id, bench.note())
    same(merged.conflicts, (), "the conflicts of the second merge")
    expected = {b"e/f": b"edited", b"e/g": b"late", b"e/h": b"added", b"e/other": b"1"}
    same(see_files(bench.engine.view(merged.commit or UNKNOWN)), expected, "the second merge")
    same(see_files(bench.engine.working("main")), expected, "the working layer")


def squashed_work_counts_as_merged(bench: Bench) -> None:
    """`unmerged` looks at content."""
    base, _, theirs = _fork(bench, {b"f": b"1", b"g": b"1"})
    same(bench.engine.unmerged("side", "main"), False, "a branch that did nothing")
    theirs({b"f": b"2", b"g": None})
    same(bench.engine.unmerged("side", "main"), True, "a branch with work of its own")
    main = bench.engine.working("main")
    put_file(main, b"f", b"2")
    bench.commit("main")
    same(bench.engine.unmerged("side", "main"), True, "half of it taken over")
    remove(main, b"g")
    bench.commit("main")
    put_file(main, b"f", b"3")
    bench.commit("main")
    same(bench.engine.unmerged("side", "main"), False, "all of it taken over, by other commits")
    put_file(bench.engine.working("side"), b"new", b"unsaved")
    same(bench.engine.unmerged("side", "main"), True, "uncommitted work")
    same(bench.engine.is_ancestor(base, bench.engine.branch("side").head), True, "the base")


def restoring_brings_back_paths_as_uncommitted_changes(bench: Bench) -> None:
    """A file, a directory, what was not there, everything; what commits pass over stays."""
    working, first = bench.grow({b"d/f": b"1", b"g": b"1"})
    remove(working, b"d")
    put_file(working, b"g", b"2")
    put_file(working, b"new", b"3")
    put_file(working, b".git/config", b"mine")
    second = bench.commit().id
    bench.engine.restore("main", first, [b"d/f", b"new"])
    same(see_files(working), {b"d/f": b"1", b"g": b"2", b".git/config": b"mine"}, "two paths restored")
    bench.engine.restore("main", second, [])
    same(see_files(working), {b"g": b"2", b"new": b"3", b".git/config": b"mine"}, "everything restored")
    same(working.changes(), [], "changes after going back")
    bench.engine.restore("main", first, [])
    third = bench.commit().id
    same(see_tree(bench.engine.view(third)), see_tree(bench.engine.view(first)), "the restored commit")


CHECKS = (
    a_merge_combines_both_sides_with_both_parents,
    conflicts_name_every_path_and_change_nothing,
    edits_follow_renames_through_merges,
    squashed_work_counts_as_merged,
    restoring_brings_back_paths_as_uncommitted_changes,
)
