"""Promises about commits: what they hold, what they leave out, and that they never change."""

from __future__ import annotations

from store.conformance.bench import (
    UNKNOWN,
    WRITING,
    Bench,
    find,
    make_directory,
    make_note,
    move,
    put_file,
    read_file,
    refused,
    remove,
    same,
    see_files,
    see_tree,
)
from store.errors import InvalidName, ReadOnly
from store.model import ROOT, AttributeChange, EntryKind

HOSTILE = (b".git", b".GIT", b"git~1", b".git ", b".git::$INDEX_ALLOCATION", ".g\u200cit".encode(), b"x\\.git")


def a_commit_holds_everything_byte_for_byte(bench: Bench) -> None:
    """Rule 5: files, executables, symlinks, empty directories, any name."""
    working = bench.start()
    names = [b"plain", b"\xff\xfe", b"new\nline", "e\u0301".encode(), b"-rf", b" ", b"a" * 255, b"\\", b"con"]
    for name in names:
        put_file(working, b"d/" + name, b"content of " + name)
    put_file(working, b"run", bytes(range(256)) * 300, 0o755)
    put_file(working, b"empty", b"")
    working.symlink(ROOT, b"link", b"../outside/\xff")
    make_directory(working, b"hollow/below")
    seen = see_tree(working)
    committed = bench.commit()
    same(committed.changed, len(names) + 4, "the number of changes")
    same(see_tree(bench.engine.view(committed.id)), seen, "the committed tree")
    same(see_tree(bench.start("again", committed.id)), seen, "a fork of it")
    same(see_tree(working), seen, "the working layer after the commit")
    same((working.changes(), bench.engine.dirty()), ([], {}), "what is left to commit")


def a_commit_tells_its_parents_note_and_tree(bench: Bench) -> None:
    """Provenance comes back as it went in."""
    working, first = bench.grow({b"f": b"1"})
    put_file(working, b"f", b"2")
    note = make_note("subject\n\nbody\n\nNas-Principal: forged", bench.now())
    second = bench.engine.commit("main", note)
    same(second is not None, True, "the commit")
    commit = bench.engine.read_commit(second.id if second else UNKNOWN)
    same((commit.parents, commit.note), ((first,), note), "the commit read back")
    same(commit.tree != bench.engine.read_commit(first).tree, True, "trees of different content differ")


def a_commit_without_a_change_is_none(bench: Bench) -> None:
    """Touching, or changing there and back, is no change; nor are attributes that commits do not hold."""
    working, first = bench.grow({b"f": b"1"})
    same(bench.engine.commit("main", bench.note()), None, "a commit of nothing")
    put_file(working, b"f", b"2")
    put_file(working, b"f", b"1")
    move(working, b"f", b"g")
    move(working, b"g", b"f")
    working.set_attributes(find(working, b"f").node, AttributeChange(mode=0o600, mtime_ns=5))
    same(working.changes(), [], "changes that undo each other")
    same(bench.engine.commit("main", bench.note()), None, "a commit of nothing in the end")
    same(bench.engine.branch("main").head, first, "the head")


def a_commit_never_changes_the_commits_before_it(bench: Bench) -> None:
    """Rule 5, while a handle to the old tree is open."""
    working, first = bench.grow({b"f": b"old", b"d/g": b"old"})
    view = bench.engine.view(first)
    handle = view.open(find(view, b"f").node)
    put_file(working, b"f", b"changed")
    remove(working, b"d")
    bench.commit()
    same(handle.read(0, 10), b"old", "an open handle of the old tree")
    handle.close()
    same(see_files(view), {b"f": b"old", b"d/g": b"old"}, "the old view")
    with refused(ReadOnly):
        view.open(find(view, b"f").node, WRITING)


def names_no_checkout_can_be_trusted_with_stay_out_of_commits(bench: Bench) -> None:
    """Rule 8: reported, and everything else is committed."""
    working = bench.start()
    for name in HOSTILE:
        put_file(working, b"d/" + name, b"hostile")
    put_file(working, b".git/hooks/run", b"hostile")
    put_file(working, b"d/fine", b"fine")
    working.symlink(ROOT, b".gitmodules", b"elsewhere")
    working.create(ROOT, b"pipe", 0o644, EntryKind.FIFO)
    working.create(ROOT, b"socket", 0o644, EntryKind.SOCKET)
    expected = sorted([b".git", b".gitmodules", b"pipe", b"socket", *(b"d/" + name for name in HOSTILE)])
    same(sorted(working.left_out()), expected, "what commits pass over")
    committed = bench.commit()
    same(sorted(committed.left_out), expected, "what the commit passed over")
    same(see_files(bench.engine.view(committed.id)), {b"d/fine": b"fine"}, "the committed files")
    same(read_file(working, b".git/hooks/run"), b"hostile", "what stays in the working layer")
    same((working.changes(), bench.engine.commit("main", bench.note())), ([], None), "what is left to commit")


def names_that_are_no_names_are_refused(bench: Bench) -> None:
    """Rule 8: by every way to make a name."""
    working = bench.start()
    node = working.create(ROOT, b"f", 0o644).node
    for name in (b"", b".", b"..", b"a/b", b"a\0", b"x" * 256):
        for make in (
            lambda name=name: working.create(ROOT, name, 0o644),
            lambda name=name: working.mkdir(ROOT, name, 0o755),
            lambda name=name: working.symlink(ROOT, name, b"t"),
            lambda name=name: working.link(node, ROOT, name),
            lambda name=name: working.rename(ROOT, b"f", ROOT, name),
        ):
            with refused(InvalidName):
                make()
    same(list(see_files(working)), [b"f"], "the names after refusals")


def twins_are_reported_where_a_commit_changed_the_directory(bench: Bench) -> None:
    """Case and composition twins are legal, and named by path."""
    working = bench.start()
    for path in (b"d/A", b"d/a", "d/\u00e9".encode(), "d/e\u0301".encode(), b"other/x"):
        put_file(working, path, path)
    committed = bench.commit()
    same(sorted(committed.twins), sorted([(b"d/A", b"d/a"), ("d/e\u0301".encode(), "d/\u00e9".encode())]), "the twins")
    put_file(working, b"other/x", b"changed")
    same(bench.commit().twins, (), "twins of a directory that did not change")


CHECKS = (
    a_commit_holds_everything_byte_for_byte,
    a_commit_tells_its_parents_note_and_tree,
    a_commit_without_a_change_is_none,
    a_commit_never_changes_the_commits_before_it,
    names_no_checkout_can_be_trusted_with_stay_out_of_commits,
    names_that_are_no_names_are_refused,
    twins_are_reported_where_a_commit_changed_the_directory,
)
