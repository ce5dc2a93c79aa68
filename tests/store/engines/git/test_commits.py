"""Commits hold what was written, whole; what no commit can hold stays beside; rows are settled, not rebuilt."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.contract import Working
from store.engines.git.commands import run_git
from store.engines.git.engine import GitEngine
from store.engines.git.steps import watch_steps
from store.errors import Moved, NoSpace
from store.model import ROOT, AttributeChange, CommitId, EntryKind
from tests.store.engines.git.desk import NOTE, WRITING, commit, find, names, open_store, parent_of, put, read, write

_MIB = 1 << 20


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[GitEngine]:
    made = open_store(tmp_path / "store")
    made.create_branch("main", None, 1)
    yield made
    made.close()


@pytest.fixture
def working(engine: GitEngine) -> Working:
    return engine.working("main")


def paths_of(engine: GitEngine, commit: CommitId) -> set[bytes]:
    return {change.path for change in engine.diff(None, commit)}


def test_what_is_below_a_git_folder_is_parked_and_not_looked_at_again(engine: GitEngine, working: Working) -> None:
    working.mkdir(ROOT, b".git", 0o755)
    put(working, b".git/config", b"x")
    put(working, b"kept", b"1")
    head = commit(engine)
    assert paths_of(engine, head) == {b"kept"}
    assert engine.dirty() == {}
    assert working.left_out() == [b".git"]
    assert read(working, b".git/config") == b"x"
    assert engine.commit("main", NOTE) is None


def test_what_leaves_a_git_folder_is_committed_with_everything_below(engine: GitEngine, working: Working) -> None:
    working.mkdir(ROOT, b".git", 0o755)
    working.mkdir(find(working, b".git").node, b"below", 0o755)
    put(working, b".git/below/file", b"x")
    put(working, b".git/other", b"y")
    assert engine.commit("main", NOTE) is None
    working.rename(find(working, b".git").node, b"below", ROOT, b"out")
    assert paths_of(engine, commit(engine)) == {b"out/file"}
    working.rename(ROOT, b".git", ROOT, b"plain")
    assert paths_of(engine, commit(engine)) == {b"out/file", b"plain/other"}
    assert working.left_out() == []


def test_what_is_changed_inside_a_git_folder_is_committed_as_changed_when_it_returns(engine: GitEngine, working: Working) -> None:
    working.mkdir(ROOT, b"d", 0o755)
    put(working, b"d/file", b"before")
    put(working, b"d/untouched", b"same")
    commit(engine)
    working.mkdir(ROOT, b".git", 0o755)
    working.rename(ROOT, b"d", find(working, b".git").node, b"d")
    assert paths_of(engine, commit(engine)) == set()
    write(working, find(working, b".git/d/file").node, b"after!")
    assert engine.commit("main", NOTE) is None
    working.rename(find(working, b".git").node, b"d", ROOT, b"e")
    view = engine.view(commit(engine))
    directory = view.lookup(ROOT, b"e").node
    assert [name for name, _ in view.list(directory)] == [b"file", b"untouched"]
    assert view.open(view.lookup(directory, b"file").node).read(0, 10) == b"after!"


def test_what_was_changed_under_a_git_name_is_committed_as_changed_under_a_further_name(engine: GitEngine, working: Working) -> None:
    node = put(working, b"file", b"one")
    commit(engine)
    working.rename(ROOT, b"file", ROOT, b".git")
    write(working, node, b"changed")
    commit(engine)
    working.link(node, ROOT, b"again")
    head = commit(engine)
    tree = engine.view(head)
    handle = tree.open(tree.lookup(ROOT, b"again").node)
    assert handle.read(0, 100) == b"changed"
    handle.close()


def test_a_file_changed_under_its_other_name_is_committed_as_changed_where_it_returns(engine: GitEngine, working: Working) -> None:
    above = working.mkdir(ROOT, b"above", 0o755).node
    node = put(working, b"above/file", b"one")
    working.link(node, ROOT, b"other")
    commit(engine)
    working.rename(ROOT, b"above", ROOT, b".git")
    write(working, node, b"two")
    commit(engine)
    working.rename(ROOT, b".git", ROOT, b"above")
    tree = engine.view(commit(engine))
    handle = tree.open(tree.lookup(tree.lookup(ROOT, b"above").node, b"file").node)
    assert handle.read(0, 100) == b"two"
    handle.close()
    assert find(working, b"above").node == above


def test_pipes_and_sockets_stay_beside_and_are_named(engine: GitEngine, working: Working) -> None:
    working.create(ROOT, b"pipe", 0o600, EntryKind.FIFO)
    working.create(ROOT, b"socket", 0o600, EntryKind.SOCKET)
    put(working, b"file", b"1")
    committed = engine.commit("main", NOTE)
    assert committed is not None
    assert committed.left_out == (b"pipe", b"socket")
    assert names(working) == [b"file", b"pipe", b"socket"]


def test_times_modes_and_links_stay_after_a_commit(engine: GitEngine, working: Working) -> None:
    node = put(working, b"file", b"1")
    working.link(node, ROOT, b"other")
    working.set_attributes(node, AttributeChange(mode=0o640, mtime_ns=5_000_000_007))
    before = working.attributes(node)
    commit(engine)
    assert working.attributes(node) == before
    assert find(working, b"other").node == node
    write(working, node, b"2")
    commit(engine)
    assert read(working, b"other") == b"2"


def test_directory_renames_cost_one_row_and_are_remembered(engine: GitEngine, working: Working) -> None:
    working.mkdir(ROOT, b"d", 0o755)
    for number in range(50):
        put(working, b"d/file%02d" % number, b"%d" % number)
    first = commit(engine)
    engine.create_branch("run", first, 1)
    run = engine.working("run")
    before = run.version()
    run.rename(ROOT, b"d", ROOT, b"e")
    told = run.touched(before)
    assert told is not None
    assert len(told) <= 4
    write(run, find(run, b"e/file07").node, b"edited")
    changes = engine.diff(first, commit(engine, "run"))
    assert {(change.path, change.origin) for change in changes} == {(b"e/file%02d" % n, b"d/file%02d" % n) for n in range(50)}


@pytest.mark.parametrize("size", [9 * _MIB, 3 * _MIB])
def test_large_files_come_back_byte_for_byte_and_small_changes_share_the_rest(engine: GitEngine, working: Working, size: int) -> None:
    content = bytearray(os.urandom(size))
    node = put(working, b"big", bytes(content))
    first = commit(engine)
    write(working, node, b"changed", size // 2)
    second = commit(engine)
    content[size // 2 : size // 2 + 7] = b"changed"
    for head, expected in ((second, bytes(content)), (first, None)):
        view = engine.view(head)
        found = view.lookup(ROOT, b"big")
        assert found.size == size
        data = view.open(found.node).read(0, size)
        assert expected is None or data == expected
        assert len(data) == size


def test_commits_above_the_journals_size_go_into_a_pack_of_their_own(engine: GitEngine, working: Working, tmp_path: Path) -> None:
    for number in range(100):
        put(working, b"file%d" % number, os.urandom(80_000))
    head = commit(engine)
    assert list((tmp_path / "store" / "repo.git" / "objects" / "pack").glob("*.pack"))
    assert len(paths_of(engine, head)) == 100
    engine.maintain(1)
    run_git(tmp_path / "store" / "repo.git", "fsck", "--strict", "--full")


def test_a_copy_up_keeps_holes(engine: GitEngine, working: Working, tmp_path: Path) -> None:
    node = put(working, b"sparse", b"start")
    write(working, node, b"end", 64 * _MIB)
    uppers = list((tmp_path / "store" / "up").glob("*/[0-9]*"))
    assert sum(path.stat().st_blocks for path in uppers) * 512 < _MIB
    assert working.attributes(node).size == 64 * _MIB + 3


def test_writers_and_commits_at_once_never_tear_a_write(engine: GitEngine, working: Working) -> None:
    size, stop = 256 << 10, threading.Event()
    node = put(working, b"file", b"\0" * size)
    first = commit(engine)

    def keep_writing() -> None:
        handle = working.open(node, WRITING)
        for number in itertools.count(1):
            handle.write(0, bytes([number % 251]) * size)
            if stop.is_set():
                break
        handle.close()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    heads: list[CommitId] = []
    while len(heads) < 8:
        committed = engine.commit("main", NOTE)
        heads += [] if committed is None else [committed.id]
    stop.set()
    writer.join()
    for head in (first, *heads):
        view = engine.view(head)
        data = view.open(view.lookup(ROOT, b"file").node).read(0, size)
        assert data == data[:1] * size
    engine.commit("main", NOTE)
    view = engine.view(engine.branch("main").head)
    assert view.open(view.lookup(ROOT, b"file").node).read(0, size) == read(working, b"file")


def test_a_name_that_moves_while_a_commit_is_written_waits_for_the_next(engine: GitEngine, working: Working) -> None:
    for number in range(80):
        put(working, b"file%02d" % number, b"%d" % number)
    mover = threading.Thread(target=working.rename, args=(ROOT, b"file00", ROOT, b"moved"))

    def interfere(step: str) -> None:
        if step == "commit: transaction" and not mover.ident:
            mover.start()
            mover.join(0.2)

    watch_steps(interfere)
    first = commit(engine)
    watch_steps(None)
    mover.join()
    assert paths_of(engine, first) == {b"file%02d" % number for number in range(80)}
    (change,) = engine.diff(first, commit(engine))
    assert (change.origin, change.path) == (b"file00", b"moved")


def test_a_full_disk_leaves_the_branch_as_it_was(engine: GitEngine, working: Working) -> None:
    put(working, b"file", b"1")
    head = engine.branch("main").head

    def fill(step: str) -> None:
        if step == "commit: transaction":
            raise NoSpace("the store", "the disk below it is full")

    watch_steps(fill)
    with pytest.raises(NoSpace):
        engine.commit("main", NOTE)
    watch_steps(None)
    assert engine.branch("main").head == head
    assert list(engine.dirty()) == ["main"]
    assert paths_of(engine, commit(engine)) == {b"file"}


def test_a_merge_refuses_a_working_layer_with_changes_and_takes_one_whose_changes_came_to_nothing(
    engine: GitEngine, working: Working
) -> None:
    node = put(working, b"file", b"1")
    base = commit(engine)
    engine.create_branch("run", base, 1)
    run = engine.working("run")
    put(run, b"theirs", b"2")
    theirs = commit(engine, "run")
    write(working, node, b"2")
    with pytest.raises(Moved):
        engine.merge("main", base, theirs, NOTE)
    write(working, node, b"1")
    assert engine.merge("main", base, theirs, NOTE).commit == engine.branch("main").head
    assert names(working) == [b"file", b"theirs"]
    assert working.changes() == []


def test_restoring_everything_touches_only_what_differs(engine: GitEngine, working: Working) -> None:
    working.mkdir(ROOT, b"d", 0o755)
    for number in range(30):
        put(working, b"d/file%02d" % number, b"%d" % number)
    first = commit(engine)
    engine.create_branch("run", first, 1)
    run = engine.working("run")
    kept = find(run, b"d/file05").node
    write(run, kept, b"changed")
    run.unlink(*parent_of(run, b"d/file06"))
    put(run, b"d/extra", b"1")
    commit(engine, "run")
    before = run.version()
    engine.restore("run", first, [])
    told = run.touched(before)
    assert told is not None
    assert {each.name for each in told if each.name is not None} == {b"extra", b"file06"}
    assert find(run, b"d/file05").node == kept
    assert read(run, b"d/file05") == b"5"
    assert engine.diff(first, commit(engine, "run")) == []


def test_a_name_that_restoring_removes_leaves_its_node_to_the_one_that_stays(engine: GitEngine, working: Working) -> None:
    node = put(working, b"file", b"one")
    head = commit(engine)
    write(working, node, b"two")
    working.link(node, ROOT, b"other")
    engine.restore("main", head, [])
    assert names(working) == [b"file"]
    assert find(working, b"file").node == node
    assert read(working, b"file") == b"one"


def test_the_history_is_plain_git(engine: GitEngine, working: Working, tmp_path: Path) -> None:
    put(working, b"file", b"1\n")
    commit(engine)
    engine.maintain(1)
    shown = subprocess.run(
        ["git", f"--git-dir={tmp_path / 'store' / 'repo.git'}", "show", "main:file"],
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert shown.stdout == b"1\n"


def test_directories_may_lie_deeper_than_the_interpreter_nests_calls(engine: GitEngine, working: Working) -> None:
    depth, node = 1_200, ROOT
    for _ in range(depth):
        node = working.mkdir(node, b"d", 0o755).node
    working.create(node, b"file", 0o644)
    engine.create_branch("run", commit(engine), 1)
    run, node = engine.working("run"), ROOT
    for _ in range(depth):
        node = run.lookup(node, b"d").node
    found = run.lookup(node, b"file").node
    write(run, found, b"deep")
    assert run.path(found) == b"d/" * depth + b"file"
    assert engine.commit("run", NOTE) is not None


def test_a_directory_that_holds_what_no_commit_can_stays_when_the_head_loses_it(engine: GitEngine, working: Working) -> None:
    first = engine.branch("main").head
    working.mkdir(ROOT, b"d", 0o755)
    working.create(find(working, b"d").node, b"pipe", 0o600, EntryKind.FIFO)
    put(working, b"d/file", b"1")
    second = commit(engine)
    engine.move_branch("main", second, first)
    assert names(working) == [b"d"]
    assert names(working, b"d") == [b"pipe"]
    assert [(change.path, change.old) for change in working.changes()] == [(b"d", None)]
    assert list(engine.dirty()) == ["main"]
    with pytest.raises(Moved):
        engine.move_branch("main", first, second)
    third = commit(engine)
    assert [change.path for change in engine.diff(first, third)] == [b"d"]
    engine.merge("main", third, second, NOTE)
    assert read(working, b"d/file") == b"1"
    assert working.changes() == []


def test_an_open_file_outlives_a_head_that_has_a_file_where_its_directory_was(engine: GitEngine, working: Working) -> None:
    working.mkdir(ROOT, b"d", 0o755)
    put(working, b"d/file", b"content")
    first = commit(engine)
    engine.create_branch("run", first, 1)
    working.unlink(*parent_of(working, b"d/file"))
    working.rmdir(ROOT, b"d")
    put(working, b"d", b"a file")
    second = commit(engine)
    run = engine.working("run")
    node = find(run, b"d/file").node
    handle = run.open(node, WRITING)
    engine.move_branch("run", first, second)
    assert handle.read(0, 20) == b"content"
    assert run.attributes(node).links == 0
    handle.write(0, b"CON")
    assert handle.read(0, 20) == b"CONtent"
    handle.close()
    assert read(run, b"d") == b"a file"


def test_a_directory_that_holds_what_no_commit_can_stays_where_the_head_gets_a_file(engine: GitEngine, working: Working) -> None:
    working.mkdir(ROOT, b"d", 0o755)
    put(working, b"d/file", b"1")
    put(working, b"f", b"2")
    base = commit(engine)
    engine.create_branch("run", base, 1)
    run = engine.working("run")
    run.rename(ROOT, b"d", ROOT, b"f", exchange=True)
    theirs = commit(engine, "run")
    working.mkdir(find(working, b"d").node, b".git", 0o755)
    assert engine.commit("main", NOTE) is None
    assert engine.merge("main", base, theirs, NOTE).commit is not None
    assert names(working, b"d") == [b".git"]
    assert read(working, b"f/file") == b"1"
    assert [change.path for change in working.changes()] == [b"d"]
    assert paths_of(engine, commit(engine)) == {b"d", b"f/file"}


def test_a_path_and_the_directory_above_it_may_be_restored_together(engine: GitEngine, working: Working) -> None:
    first = engine.branch("main").head
    working.mkdir(ROOT, b"d", 0o755)
    put(working, b"d/file", b"1")
    put(working, b"d/other", b"2")
    engine.create_branch("run", commit(engine), 1)
    run = engine.working("run")
    engine.restore("run", first, [b"d/file", b"d"])
    assert names(run) == []
    assert {change.path for change in run.changes()} == {b"d/file", b"d/other"}
    assert paths_of(engine, commit(engine, "run")) == set()
