"""Promises about whole contents: what identifies one."""

from __future__ import annotations

import io

from store.conformance.bench import APPENDING, REPLACING, WRITING, Bench, find, make_directory, move, same, write_node
from store.contract import Working
from store.model import ROOT, AttributeChange, Capability, NodeId


def only_other_bytes_have_another_identity(bench: Bench) -> None:
    """Attributes, times, names and commits leave the identity of a content as it is, of touched files and of untouched ones."""
    working, _ = bench.grow({b"d/placed": b"1", b"d/untouched": b"2"})
    working.place(find(working, b"d").node, b"placed", 0o644, io.BytesIO(b"3"))
    for path in (b"d/placed", b"d/untouched"):
        before = find(working, path).content
        same(before != b"", True, "whether a file has an identity")
        _change_all_but_content(bench, working, find(working, path).node)
        same(find(working, path).content, before, f"the identity of {path!r} after changes of its attributes")
        bench.commit()
        same(find(working, path).content, before, f"the identity of {path!r} after a commit")
        working.set_attributes(find(working, path).node, AttributeChange(mtime_ns=4))
        move(working, path, path + b" moved")
        same(find(working, path + b" moved").content, before, f"the identity of {path!r} after a rename")
        bench.commit()


def _change_all_but_content(bench: Bench, working: Working, node: NodeId) -> None:
    working.set_attributes(node, AttributeChange(mode=0o750, uid=7))
    working.set_attributes(node, AttributeChange(mtime_ns=1))
    working.set_attributes(node, AttributeChange(mtime_ns=2, atime_ns=3))
    if bench.declares(Capability.XATTRS):
        working.set_xattr(node, b"user.a", b"1")
    working.open(node, WRITING).close()


def a_commit_names_contents_as_its_changes_do(bench: Bench) -> None:
    """What a commit's tree says identifies a file is what its differences say, and so does a branch where nobody touched it."""
    _, head = bench.grow({b"d/f": b"1", b"large": b"2" * 100_000})
    sides = {change.path: change.new for change in bench.engine.diff(None, head)}
    bench.engine.create_branch("untouched", head, 5)
    untouched = bench.engine.working("untouched")
    for path in (b"d/f", b"large"):
        side = sides[path]
        named = b"" if side is None else side.content.encode()
        same(find(bench.engine.view(head), path).content, named, f"the identity of {path!r} in a tree")
        same(find(untouched, path).content, named, f"the identity of {path!r} where nobody touched it")
    untouched.close()


def every_change_of_the_bytes_changes_the_identity(bench: Bench) -> None:
    """Writing, appending, truncating, replacing; of a file as a commit has it, and of one that was written before."""
    working, _ = bench.grow({b"f": b"1234"})
    node = find(working, b"f").node
    seen = [find(working, b"f").content]
    for count, access in enumerate((WRITING, WRITING, APPENDING, REPLACING)):
        write_node(working, node, b"%d" % count, 1, access)
        seen.append(find(working, b"f").content)
    working.set_attributes(node, AttributeChange(size=1))
    seen.append(find(working, b"f").content)
    bench.commit()
    write_node(working, node, b"8", 0, WRITING)
    seen.append(find(working, b"f").content)
    working.set_attributes(node, AttributeChange(mtime_ns=5))
    write_node(working, node, b"9", 0, WRITING)
    seen.append(find(working, b"f").content)
    working.place(ROOT, b"f", 0o644, io.BytesIO(b"0"))
    seen.append(find(working, b"f").content)
    same(len(set(seen)), 9, "the number of identities")


def what_is_no_file_has_no_identity(bench: Bench) -> None:
    """Directories and symlinks have no content of their own; one commit holds equal contents under one identity."""
    working, head = bench.grow({b"one": b"same", b"two": b"same", b"three": b"else"})
    same(working.attributes(ROOT).content, b"", "the identity of the root")
    make_directory(working, b"d")
    same((find(working, b"d").content, working.symlink(ROOT, b"l", b"t").content), (b"", b""), "of a directory and a symlink")
    view = bench.engine.view(head)
    one, two, three = (find(view, name).content for name in (b"one", b"two", b"three"))
    same((one == two, one == three), (True, False), "whether equal contents have one identity")


def the_identity_follows_restored_content(bench: Bench) -> None:
    """What is put back has the identity of what it was put back to, or another; never that of what was there."""
    working, head = bench.grow({b"f": b"1"})
    write_node(working, find(working, b"f").node, b"2", 0, WRITING)
    working.set_attributes(find(working, b"f").node, AttributeChange(mtime_ns=5))
    written = find(working, b"f").content
    bench.engine.restore("main", head, [b"f"])
    same(find(working, b"f").content != written, True, "whether the identity changed")


CHECKS = (
    only_other_bytes_have_another_identity,
    a_commit_names_contents_as_its_changes_do,
    every_change_of_the_bytes_changes_the_identity,
    what_is_no_file_has_no_identity,
    the_identity_follows_restored_content,
)
