"""Promises about the working layer: files, names, attributes, handles, and what two callers see."""

from __future__ import annotations

import io
from collections.abc import Callable

from store.conformance.bench import (
    APPENDING,
    REPLACING,
    WRITING,
    Bench,
    find,
    make_directory,
    move,
    put_file,
    read_file,
    refused,
    remove,
    same,
    see_files,
    write_node,
)
from store.errors import Exists, IntoItself, InvalidName, IsADirectory, NotADirectory, NotEmpty, NotFound, NotPermitted, Stale, TooLarge
from store.model import ROOT, AttributeChange, Capability, ChangeKind, NodeId


def nodes_keep_their_identity(bench: Bench) -> None:
    """Rule 7: through renames, commits and restarts."""
    working, _ = bench.grow({b"d/f": b"1", b"d/s/g": b"2"})
    nodes = {name: find(working, b"d" + name).node for name in (b"", b"/f", b"/s", b"/s/g")}
    move(working, b"d", b"e")
    put_file(working, b"e/f", b"changed")
    bench.commit()
    if bench.declares(Capability.DURABLE):
        bench.reopen()
    after = bench.engine.working("main")
    same({name: find(after, b"e" + name).node for name in nodes}, nodes, "the nodes")
    same(after.path(nodes[b"/s/g"]), b"e/s/g", "the path of a node")


def what_one_caller_did_the_next_call_of_another_sees(bench: Bench) -> None:
    """Rule 6: two callers of one working layer."""
    one = bench.start()
    other = bench.engine.working("main")
    before = other.version()
    put_file(one, b"d/f", b"1")
    same(read_file(other, b"d/f"), b"1", "the file another made")
    same(other.version() > before, True, "the version grew")
    touched = other.touched(before)
    same(touched is None or (ROOT, b"d") in {(each.parent, each.name) for each in touched}, True, "the touched name")
    write_node(other, find(other, b"d/f").node, b"23")
    same(read_file(one, b"d/f"), b"23", "the content another wrote")
    same(one.touched(one.version()), [], "touched since now")
    one.close()
    remove(other, b"d")
    same(see_files(bench.engine.working("main")), {}, "the tree after removal")


def a_commit_touches_nothing(bench: Bench) -> None:
    """What a commit does to its own books is no change that anybody sees."""
    working, _ = bench.grow({b"d/f": b"1", b"g": b"1"})
    put_file(working, b"d/f", b"2")
    move(working, b"g", b"h")
    before = working.version()
    bench.commit()
    touched = working.touched(before)
    same(None if touched is None else list(touched), [], "what the commit touched")


def errors_say_what_is_wrong(bench: Bench) -> None:
    """The documented errors of every method of a working layer."""
    working, _ = bench.grow({b"d/f": b"1", b"g": b"2"})
    directory, file = find(working, b"d").node, find(working, b"g").node
    link = working.symlink(ROOT, b"l", b"g").node
    cases: list[tuple[type, Callable[[], object]]] = [
        (NotFound, lambda: working.lookup(ROOT, b"none")),
        (NotADirectory, lambda: working.lookup(file, b"x")),
        (NotADirectory, lambda: working.list(file)),
        (Stale, lambda: working.attributes(NodeId(987_654_321))),
        (IsADirectory, lambda: working.open(directory)),
        (NotPermitted, lambda: working.open(link)),
        (NotPermitted, lambda: working.readlink(file)),
        (Exists, lambda: working.create(ROOT, b"g", 0o644)),
        (Exists, lambda: working.mkdir(ROOT, b"d", 0o755)),
        (Exists, lambda: working.symlink(ROOT, b"g", b"t")),
        (TooLarge, lambda: working.symlink(ROOT, b"long", b"t" * 4_096)),
        (NotFound, lambda: working.unlink(ROOT, b"none")),
        (IsADirectory, lambda: working.unlink(ROOT, b"d")),
        (NotADirectory, lambda: working.rmdir(ROOT, b"g")),
        (NotEmpty, lambda: working.rmdir(ROOT, b"d")),
        (NotFound, lambda: move(working, b"none", b"x")),
        (Exists, lambda: move(working, b"g", b"d/f", replace=False)),
        (NotADirectory, lambda: move(working, b"d", b"g")),
        (IsADirectory, lambda: move(working, b"g", b"d")),
        (IntoItself, lambda: working.rename(ROOT, b"d", directory, b"x")),
        (NotFound, lambda: move(working, b"g", b"none", exchange=True)),
        (IsADirectory, lambda: working.set_attributes(directory, AttributeChange(size=0))),
        (NotPermitted, lambda: working.set_attributes(link, AttributeChange(size=0))),
    ]
    for error, call in cases:
        with refused(error):
            call()
    same(see_files(working), {b"d/f": b"1", b"g": b"2", b"l": b"g"}, "the tree after refusals")


def renames_replace_refuse_and_swap_as_posix_says(bench: Bench) -> None:
    """Over a file, over an empty directory, both ways at once, onto itself."""
    working = bench.start()
    for path in (b"a", b"b", b"d/x", b"e/y"):
        put_file(working, path, path)
    make_directory(working, b"hollow")
    with refused(NotEmpty):
        move(working, b"d", b"e")
    move(working, b"a", b"b")
    move(working, b"d", b"hollow")
    move(working, b"b", b"b")
    move(working, b"hollow", b"e", exchange=True)
    same(see_files(working), {b"b": b"a", b"e/x": b"d/x", b"hollow/y": b"e/y"}, "the tree after renames")
    with refused(IntoItself):
        working.rename(find(working, b"e").node, b"x", ROOT, b"e", exchange=True)


def a_handle_outlives_the_name_of_its_file(bench: Bench) -> None:
    """Unlink and rename while open; the node answers until the handle is closed."""
    working = bench.start()
    node = put_file(working, b"f", b"1")
    handle = working.open(node, WRITING)
    move(working, b"f", b"g")
    handle.write(1, b"2")
    same(read_file(working, b"g"), b"12", "the renamed file")
    working.unlink(ROOT, b"g")
    handle.write(2, b"3")
    same(handle.read(0, 9), b"123", "the file without a name")
    same((working.attributes(node).links, working.attributes(node).size), (0, 3), "its attributes")
    same(working.set_attributes(node, AttributeChange(size=1, mode=0o600)).size, 1, "its truncated size")
    same(bench.engine.commit("main", bench.note()), None, "a commit of a file without a name")
    same(handle.read(0, 9), b"1", "the file after the commit")
    handle.close()
    handle.close()
    with refused(Stale):
        working.attributes(node)


def writes_land_where_they_should(bench: Bench) -> None:
    """Offsets, holes, truncation, append, and reading what was written through another handle."""
    working = bench.start()
    node = put_file(working, b"f", b"0123456789")
    write_node(working, node, b"ab", 3, WRITING)
    write_node(working, node, b"end", 0, APPENDING)
    same(read_file(working, b"f"), b"012ab56789end", "after a write and an append")
    working.set_attributes(node, AttributeChange(size=4))
    write_node(working, node, b"x", 6, WRITING)
    same(read_file(working, b"f"), b"012a\0\0x", "after truncation and a hole")
    reader, writer = working.open(node), working.open(node, WRITING)
    writer.write(0, b"Z")
    same((reader.read(0, 1), reader.read(7, 5), reader.read(100, 5)), (b"Z", b"", b""), "what a reader sees")
    with refused(NotPermitted):
        reader.write(0, b"no")
    reader.close()
    writer.close()
    handle = working.open(node, REPLACING)
    same(working.attributes(node).size, 0, "the size after opening to replace")
    handle.close()


def a_whole_file_is_put_under_a_name_at_once(bench: Bench) -> None:
    """`place`: made, or replacing a file or symlink; open handles keep what they had."""
    working, _ = bench.grow({b"f": b"old", b"d/x": b"1"})
    node = find(working, b"f").node
    working.set_attributes(node, AttributeChange(mode=0o750))
    working.symlink(ROOT, b"l", b"f")
    handle = working.open(node)
    for name in (b"f", b"l", b"fresh"):
        working.place(ROOT, name, 0o600, io.BytesIO(name * 100_000))
    same(handle.read(0, 9), b"old", "an open handle of the former file")
    handle.close()
    for name in (b"f", b"l", b"fresh"):
        same(read_file(working, name) == name * 100_000, True, f"the content of {name!r}")
    same([find(working, name).mode for name in (b"f", b"l", b"fresh")], [0o750, 0o600, 0o600], "their modes")
    with refused(IsADirectory):
        working.place(ROOT, b"d", 0o600, io.BytesIO(b""))
    with refused(InvalidName):
        working.place(ROOT, b"..", 0o600, io.BytesIO(b""))
    same(read_file(bench.engine.view(bench.commit().id), b"l"), b"l" * 100_000, "the committed file")


def a_size_beyond_every_limit_is_too_large(bench: Bench) -> None:
    """Truncating and writing far out are refused before anything changes."""
    working = bench.start()
    node = put_file(working, b"f", b"1")
    far = (1 << 63) - 2
    with refused(TooLarge):
        working.set_attributes(node, AttributeChange(size=far))
    with refused(TooLarge):
        write_node(working, node, b"2", far, WRITING)
    same(read_file(working, b"f"), b"1", "the file after refusals")


def attributes_stay_while_the_branch_lives(bench: Bench) -> None:
    """Mode bits, owner and times survive commits; the executable bit is committed."""
    working, _ = bench.grow({b"f": b"1"})
    node = find(working, b"f").node
    change = AttributeChange(mode=0o4750, mtime_ns=123_456_789_012, uid=7, gid=8)
    working.set_attributes(node, change)
    committed = bench.commit()
    found = bench.engine.working("main").attributes(node)
    same((found.mode, found.mtime_ns, found.uid, found.gid), (0o4750, 123_456_789_012, 7, 8), "the attributes")
    same(find(bench.engine.view(committed.id), b"f").mode, 0o755, "the committed mode")
    same(found.st_mode, 0o104750, "type and mode in one number")


def times_move_with_changes(bench: Bench) -> None:
    """A name that comes or goes touches its directory, a write its file, a change of attributes the ctime."""
    working = bench.start()
    node = put_file(working, b"d/f", b"1")
    directory = find(working, b"d").node
    for target in (directory, node):
        working.set_attributes(target, AttributeChange(mtime_ns=1))
    write_node(working, node, b"2", 0, WRITING)
    same((working.attributes(node).mtime_ns > 1, working.attributes(directory).mtime_ns), (True, 1), "times after a write")
    move(working, b"d/f", b"d/g")
    same(working.attributes(directory).mtime_ns > 1, True, "the directory's time after a rename")


def what_a_commit_passed_over_comes_from_nowhere(bench: Bench) -> None:
    """A file that moves below a name no commit can hold, and back after a commit, was added: the head has none it came from."""
    working, first = bench.grow({b"a/b/x": b"1", b"c": b"1"})
    move(working, b"a/b", b"git~1")
    bench.engine.restore("main", first, [])
    write_node(working, find(working, b"c").node, b"2")
    bench.commit()
    move(working, b"a", b"git~1", exchange=True)
    kinds = {change.path: change.kind for change in working.changes()}
    same(kinds, {b"a/b/x": ChangeKind.DELETED, b"a/x": ChangeKind.ADDED}, "the changes")


CHECKS = (
    what_a_commit_passed_over_comes_from_nowhere,
    a_whole_file_is_put_under_a_name_at_once,
    a_size_beyond_every_limit_is_too_large,
    nodes_keep_their_identity,
    what_one_caller_did_the_next_call_of_another_sees,
    a_commit_touches_nothing,
    errors_say_what_is_wrong,
    renames_replace_refuse_and_swap_as_posix_says,
    a_handle_outlives_the_name_of_its_file,
    writes_land_where_they_should,
    attributes_stay_while_the_branch_lives,
    times_move_with_changes,
)
