"""Promises about history: texts, logs, differences and patches."""

from __future__ import annotations

from store.conformance.bench import Bench, find, make_directory, move, put_file, refused, remove, same, see_change
from store.errors import Exists, NotFound
from store.model import AttributeChange, ChangeKind


def texts_resolve_to_commits(bench: Bench) -> None:
    """Branches, snapshots, full ids and unique prefixes."""
    working, first = bench.grow({b"f": b"1"})
    put_file(working, b"f", b"2")
    second = bench.commit().id
    bench.engine.create_snapshot("v1", first, 5)
    same([bench.engine.resolve(text) for text in ("main", "v1", first, second[:12])], [second, first, first, second], "resolved")
    for text in (first[:6], "f" * 40, "no/such", ""):
        with refused(NotFound):
            bench.engine.resolve(text)
    with refused(Exists):
        bench.engine.create_snapshot("v1", second, 6)
    same([(each.name, each.head) for each in bench.engine.snapshots()], [("v1", first)], "the snapshots")


def history_is_walked_newest_first(bench: Bench) -> None:
    """`log`, with and without a path, and ancestry."""
    working, first = bench.grow({b"d/f": b"1", b"g": b"1"})
    put_file(working, b"g", b"2")
    second = bench.commit().id
    put_file(working, b"d/f", b"2")
    third = bench.commit().id
    remove(working, b"d")
    fourth = bench.commit().id
    same([each.id for each in bench.engine.log(fourth)][:4], [fourth, third, second, first], "the history")
    same([each.id for each in bench.engine.log(fourth, b"d/f")], [fourth, third, first], "the history of a file")
    same([each.id for each in bench.engine.log(fourth, b"d")], [fourth, third, first], "the history of a directory")
    same(
        [bench.engine.is_ancestor(*pair) for pair in ((first, fourth), (fourth, fourth), (fourth, first))], [True, True, False], "ancestry"
    )
    bench.start("side", second)
    put_file(bench.engine.working("side"), b"x", b"1")
    side = bench.commit("side").id
    same(bench.engine.merge_base(side, fourth), second, "the common ancestor")
    bench.start("stranger")
    same(bench.engine.merge_base(bench.engine.branch("stranger").head, fourth), None, "no common ancestor")


def differences_name_what_happened(bench: Bench) -> None:
    """Added, modified, deleted, renamed as recorded; modes; empty directories; backwards too."""
    working, first = bench.grow({b"d/keep": b"same", b"d/edit": b"1", b"gone": b"x", b"mode": b"m"})
    move(working, b"d", b"e")
    put_file(working, b"e/edit", b"22")
    put_file(working, b"fresh", b"new")
    remove(working, b"gone")
    working.set_attributes(find(working, b"mode").node, AttributeChange(mode=0o755))
    make_directory(working, b"hollow")
    expected = [
        (ChangeKind.RENAMED, b"e/edit", b"d/edit"),
        (ChangeKind.RENAMED, b"e/keep", b"d/keep"),
        (ChangeKind.ADDED, b"fresh", None),
        (ChangeKind.DELETED, b"gone", None),
        (ChangeKind.ADDED, b"hollow", None),
        (ChangeKind.MODIFIED, b"mode", None),
    ]
    same([(each.kind, each.path, each.origin) for each in working.changes()], expected, "uncommitted changes")
    uncommitted = [see_change(each) for each in working.changes()]
    second = bench.commit().id
    same([see_change(each) for each in bench.engine.diff(first, second)], uncommitted, "the diff of the commit")
    same([each.path for each in bench.engine.diff(None, first)], [b"d/edit", b"d/keep", b"gone", b"mode"], "the diff from nothing")
    back = {(each.kind, each.path, each.origin) for each in bench.engine.diff(second, first)}
    same((ChangeKind.RENAMED, b"d/keep", b"e/keep") in back, True, "the rename backwards")
    same(bench.engine.diff(second, second), [], "the diff with itself")


def patches_show_text_and_pass_over_the_rest(bench: Bench) -> None:
    """Unified, None for binary and large sides."""
    working, first = bench.grow({b"t": b"one\ntwo\n", b"b": b"\0one", b"big": b"x\n" * 3000})
    for path, content in ((b"t", b"one\n2\n"), (b"b", b"\0two"), (b"big", b"y\n" * 3000)):
        put_file(working, path, content)
    changes = {each.path: each for each in bench.engine.diff(first, bench.commit().id)}
    patch = bench.engine.patch(changes[b"t"]) or b""
    same(all(line in patch.split(b"\n") for line in (b"-two", b"+2", b" one")), True, f"the patch {patch!r}")
    same(bench.engine.patch(changes[b"b"]), None, "the patch of a binary file")
    same(bench.engine.patch(changes[b"big"], limit=1000), None, "the patch of a large file")


CHECKS = (
    texts_resolve_to_commits,
    history_is_walked_newest_first,
    differences_name_what_happened,
    patches_show_text_and_pass_over_the_rest,
)
