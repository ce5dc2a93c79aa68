"""Promises about branches: where they start, how they move, what they refuse."""

from __future__ import annotations

from store.conformance.bench import UNKNOWN, Bench, find, put_file, read_file, refused, same, see_files
from store.errors import Exists, InvalidName, Moved, NotFound, ReadOnly
from store.model import ROOT


def a_branch_starts_empty_or_at_a_commit(bench: Bench) -> None:
    """Rule 4: a branch made at a commit holds its tree."""
    working, first = bench.grow({b"d/f": b"1"})
    same(see_files(bench.start("agent/r1", first)), {b"d/f": b"1"}, "the forked tree")
    branch = bench.engine.branch("agent/r1")
    same((branch.head, branch.base, branch.protected), (first, first, False), "the forked branch")
    same([each.name for each in bench.engine.branches()], ["agent/r1", "main"], "the branches")
    same([each.name for each in bench.engine.branches("agent/")], ["agent/r1"], "the branches below a prefix")
    same(see_files(working), {b"d/f": b"1"}, "the tree that was forked")


def a_branch_name_is_taken_once_and_not_above_or_below(bench: Bench) -> None:
    """Names are git reference names; ``a`` beside ``a/b`` is refused."""
    bench.start("a/b")
    for name in ("a/b", "a", "a/b/c"):
        with refused(Exists):
            bench.engine.create_branch(name, None, 0)
    for name in ("", "x y", "-x", "x..y", "x.lock", "/x", "HEAD"):
        with refused(InvalidName):
            bench.engine.create_branch(name, None, 0)
    with refused(NotFound):
        bench.engine.create_branch("fine", UNKNOWN, 0)
    same([branch.name for branch in bench.engine.branches()], ["a/b"], "the branches after refusals")


def what_does_not_exist_is_not_found(bench: Bench) -> None:
    """Every way to name a branch or commit says so."""
    bench.start()
    for call in (bench.engine.branch, bench.engine.working, bench.engine.resolve):
        with refused(NotFound):
            call("nowhere")
    for ask in (bench.engine.read_commit, bench.engine.view):
        with refused(NotFound):
            ask(UNKNOWN)
    with refused(NotFound):
        bench.engine.commit("nowhere", bench.note())


def a_branch_moves_only_from_where_the_caller_believes_it(bench: Bench) -> None:
    """Rule 3: compare-and-set, for moving, merging and deleting."""
    working, first = bench.grow({b"f": b"1"})
    put_file(working, b"f", b"2")
    second = bench.commit().id
    for lose in (
        lambda: bench.engine.move_branch("main", first, first),
        lambda: bench.engine.delete_branch("main", first),
        lambda: bench.engine.merge("main", first, second, bench.note()),
    ):
        with refused(Moved):
            lose()
    same(bench.engine.branch("main").head, second, "the head after lost attempts")
    bench.engine.move_branch("main", second, first)
    same(bench.engine.branch("main").head, first, "the moved head")
    same(see_files(working), {b"f": b"1"}, "the working layer after a move")


def uncommitted_changes_are_never_moved_or_merged_over(bench: Bench) -> None:
    """`move_branch` and `merge` refuse a branch with uncommitted changes."""
    working, first = bench.grow({b"f": b"1"})
    bench.start("side", first)
    put_file(bench.engine.working("side"), b"g", b"2")
    side = bench.commit("side").id
    put_file(working, b"f", b"unsaved")
    with refused(Moved):
        bench.engine.move_branch("main", first, side)
    with refused(Moved):
        bench.engine.merge("main", first, side, bench.note())
    same(see_files(working), {b"f": b"unsaved"}, "the uncommitted change")


def a_deleted_branch_is_gone_and_its_name_free(bench: Bench) -> None:
    """Deleting removes the working layer too."""
    working, first = bench.grow({b"f": b"1"})
    bench.engine.create_snapshot("kept", first, 0)
    put_file(working, b"f", b"unsaved")
    bench.engine.delete_branch("main", first)
    with refused(NotFound):
        bench.engine.branch("main")
    with refused(NotFound):
        working.create(ROOT, b"late", 0o644)
    same(see_files(bench.start("main", first)), {b"f": b"1"}, "a branch of the same name")


def a_protected_branch_has_no_working_layer(bench: Bench) -> None:
    """Only merges and moves change it."""
    _, first = bench.grow({b"f": b"1"}, "side")
    bench.engine.create_branch("main", first, 0, protected=True)
    same(bench.engine.branch("main").protected, True, "the protection")
    with refused(ReadOnly):
        bench.engine.working("main")
    with refused(ReadOnly):
        bench.engine.restore("main", first, [])
    same(bench.engine.commit("main", bench.note()), None, "a commit of a protected branch")
    put_file(bench.engine.working("side"), b"g", b"2")
    merged = bench.engine.merge("main", first, bench.commit("side").id, bench.note())
    same(see_files(bench.engine.view(merged.commit or UNKNOWN)), {b"f": b"1", b"g": b"2"}, "the merged protected branch")


def dirty_branches_are_listed_with_their_version(bench: Bench) -> None:
    """`dirty` knows what a commit would take."""
    working, first = bench.grow({b"f": b"1"})
    bench.start("other", first)
    same(bench.engine.dirty(), {}, "nothing is dirty")
    put_file(working, b"f", b"2")
    same(bench.engine.dirty(), {"main": working.version()}, "one branch is dirty")
    bench.commit()
    same(bench.engine.dirty(), {}, "nothing is dirty after the commit")


def maintenance_changes_nothing_that_can_be_seen(bench: Bench) -> None:
    """Twice, between commits, with uncommitted changes."""
    working, first = bench.grow({b"f": b"1", b"d/g": b"2" * 100_000})
    put_file(working, b"f", b"unsaved")
    for _ in range(2):
        bench.engine.maintain(bench.now())
    same(see_files(bench.engine.view(first)), {b"f": b"1", b"d/g": b"2" * 100_000}, "the commit")
    same(read_file(working, b"f"), b"unsaved", "the working layer")
    handle = working.open(find(working, b"d/g").node)
    bench.commit()
    bench.engine.maintain(bench.now())
    same(handle.read(0, 3), b"222", "an open handle")
    handle.close()
    same(bench.engine.size("main") >= 0, True, "the size of a branch")
    same(working.space().free > 0, True, "the room left")


CHECKS = (
    a_branch_starts_empty_or_at_a_commit,
    a_branch_name_is_taken_once_and_not_above_or_below,
    what_does_not_exist_is_not_found,
    a_branch_moves_only_from_where_the_caller_believes_it,
    uncommitted_changes_are_never_moved_or_merged_over,
    a_deleted_branch_is_gone_and_its_name_free,
    a_protected_branch_has_no_working_layer,
    dirty_branches_are_listed_with_their_version,
    maintenance_changes_nothing_that_can_be_seen,
)
