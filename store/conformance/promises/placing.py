"""Promises about whole files that get a name at once, copies, and bytes that wait for a name."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping

from store.conformance.bench import (
    WRITING,
    Bench,
    BrokenPromise,
    find,
    make_directory,
    put_file,
    read_file,
    refused,
    same,
    see_files,
    write_node,
)
from store.contract import Condition, Content, Joined
from store.errors import InvalidName, IsADirectory, NotFound, NotPermitted, Stale, StoreError
from store.model import ROOT, AttributeChange, Attributes, Capability

_LONG = bytes(range(256)) * 1_000


class _Stopped(Exception):
    """What a condition raises to stop a change."""


class _Torn:
    """Content that ends in the middle because its sender went away."""

    def __init__(self) -> None:
        self._pieces = [_LONG]

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, then fail."""
        if self._pieces:
            return self._pieces.pop()
        raise _Stopped


@contextlib.contextmanager
def _stopped() -> Iterator[None]:
    """Run a block that a condition or a content has to stop."""
    try:
        yield
    except _Stopped:
        return
    raise BrokenPromise("nothing stopped the change")


def _expecting(expected: bytes | None) -> Condition:
    """Return a condition that wants a content of this identity under a name, or nothing."""

    def check(found: Attributes | None) -> None:
        if (None if found is None else found.content) != expected:
            raise _Stopped

    return check


def a_condition_decides_in_the_moment_of_the_change(bench: Bench) -> None:
    """`place` and `unlink`: what the condition raises leaves everything as it was; it sees what stands there now."""
    working, _ = bench.grow({b"f": b"1"})
    first = find(working, b"f").content
    with _stopped():
        working.place(ROOT, b"f", 0o644, io.BytesIO(b"2"), condition=_expecting(None))
    with _stopped():
        working.place(ROOT, b"fresh", 0o644, io.BytesIO(b"2"), condition=_expecting(first))
    write_node(working, find(working, b"f").node, b"3", 0, WRITING)
    with _stopped():
        working.unlink(ROOT, b"f", condition=_expecting(first))
    same(see_files(working), {b"f": b"3"}, "the tree after refusals")
    working.place(ROOT, b"fresh", 0o644, io.BytesIO(b"4"), condition=_expecting(None))
    working.place(ROOT, b"f", 0o644, io.BytesIO(b"5"), condition=_expecting(find(working, b"f").content))
    working.unlink(ROOT, b"f", condition=_expecting(find(working, b"f").content))
    with refused(NotFound):
        working.unlink(ROOT, b"f", condition=_expecting(None))
    make_directory(working, b"d")
    with refused(IsADirectory):
        working.unlink(ROOT, b"d", condition=_expecting(None))
    same(see_files(working), {b"fresh": b"4"}, "the tree at last")


def content_that_ends_early_leaves_nothing(bench: Bench) -> None:
    """What reading the content raises reaches the caller; the former file stays."""
    working, _ = bench.grow({b"f": b"1"})
    with _stopped():
        working.place(ROOT, b"f", 0o644, _Torn())
    with _stopped():
        working.stage(_Torn())
    same(see_files(working), {b"f": b"1"}, "the tree after a torn content")


def attributes_come_with_the_content(bench: Bench) -> None:
    """`attach`: told the identity the file will have; sets, replaces and removes attributes of the file that was there."""
    working = bench.start()
    node = put_file(working, b"f", b"1")
    if not bench.declares(Capability.XATTRS):
        return
    for name in (b"user.kept", b"user.changed", b"user.gone"):
        working.set_xattr(node, name, b"old")
    told: list[bytes] = []

    def attach(content: bytes) -> Mapping[bytes, bytes | None]:
        told.append(content)
        return {b"user.changed": content, b"user.gone": None, b"user.never": None}

    placed = working.place(ROOT, b"f", 0o644, io.BytesIO(_LONG), attach=attach)
    same((told, placed.content, find(working, b"f").content), ([placed.content], placed.content, placed.content), "the identity")
    same(working.xattrs(placed.node), {b"user.kept": b"old", b"user.changed": placed.content}, "the attributes")
    with refused(NotPermitted):
        working.place(ROOT, b"f", 0o644, io.BytesIO(b"2"), attach=lambda content: {b"trusted.x": b"1"})
    same(read_file(working, b"f") == _LONG, True, "the content after a refusal")


def a_copy_is_a_file_of_its_own(bench: Bench) -> None:
    """`copy`: of what a commit has, of what was written since, onto itself; attributes taken along; then each goes its way."""
    working, _ = bench.grow({b"committed": b"1", b"d/x": b"1", b"there": b"1"})
    written = put_file(working, b"written", _LONG)
    working.set_attributes(written, AttributeChange(mode=0o750))
    if bench.declares(Capability.XATTRS):
        working.set_xattr(written, b"user.a", b"1")
    for name in (b"committed", b"written"):
        copied = working.copy(find(working, name).node, ROOT, name + b" copy")
        same(copied.node != find(working, name).node, True, "whether a copy is another node")
        write_node(working, find(working, name).node, b"9", 0, WRITING)
    same(read_file(working, b"committed copy"), b"1", "the copy of a committed file")
    same(read_file(working, b"written copy") == _LONG, True, "whether the copy of a written file is as the file was")
    copied = working.copy(find(working, b"written copy").node, ROOT, b"there", attach=lambda content: {b"user.b": b"2"})
    expected = {b"user.a": b"1", b"user.b": b"2"} if bench.declares(Capability.XATTRS) else {}
    same((copied.mode, working.xattrs(copied.node)), (0o644, expected), "mode and attributes of a copy over a file")
    same(find(working, b"written copy").mode, 0o750, "the mode of a copy under a name of its own")
    working.copy(copied.node, ROOT, b"there")
    with _stopped():
        working.copy(find(working, b"there").node, ROOT, b"else", condition=_expecting(b"none"))
    committed = bench.commit()
    same(read_file(bench.engine.view(committed.id), b"there") == _LONG, True, "the committed copy")
    write_node(working, find(working, b"there").node, b"7", 0, WRITING)
    same(read_file(working, b"written copy") == _LONG, True, "a copy after the other was written")


def copies_refuse_what_is_no_file(bench: Bench) -> None:
    """Directories, symlinks, nodes that are gone, names that nothing can have."""
    working, _ = bench.grow({b"d/x": b"1", b"f": b"2"})
    file, directory = find(working, b"f").node, find(working, b"d").node
    for error, source, name in (
        (IsADirectory, directory, b"a"),
        (NotPermitted, working.symlink(ROOT, b"l", b"f").node, b"a"),
        (IsADirectory, file, b"d"),
        (InvalidName, file, b".."),
    ):
        with refused(error):
            working.copy(source, ROOT, name)
    working.unlink(ROOT, b"f")
    with refused(Stale):
        working.copy(file, ROOT, b"a")


def staged_bytes_wait_for_a_name(bench: Bench) -> None:
    """`stage`: found by id by every caller, also after a restart; put together under a name; let go."""
    working = bench.start()
    parts: list[Content] = [io.BytesIO(b"1" * 100), io.BytesIO(_LONG), io.BytesIO(b"")]
    ids = [working.stage(part).id for part in parts]
    same(len(set(ids)), 3, "the number of ids")
    same(see_files(working), {}, "the tree with staged bytes")
    if bench.declares(Capability.DURABLE):
        bench.reopen()
    bench.engine.maintain(bench.now())
    again = bench.engine.working("main")
    handles = [again.staged(id) for id in ids]
    again.unstage(ids[2])
    again.unstage(ids[2])
    with refused(NotFound):
        again.staged(ids[2])
    with refused(StoreError):
        handles[0].write(0, b"2")
    again.place(ROOT, b"joined", 0o644, Joined(handles))
    same(read_file(again, b"joined") == b"1" * 100 + _LONG, True, "the parts put together")
    for handle in handles:
        handle.close()
    other = bench.start("other")
    with refused(NotFound):
        other.staged(ids[0])
    same(bench.engine.commit("other", bench.note()), None, "a commit of a branch without changes")


CHECKS = (
    a_condition_decides_in_the_moment_of_the_change,
    content_that_ends_early_leaves_nothing,
    attributes_come_with_the_content,
    a_copy_is_a_file_of_its_own,
    copies_refuse_what_is_no_file,
    staged_bytes_wait_for_a_name,
)
