"""Several processes on one store: what one did, the next call of another sees. A gateway here is an engine of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from store.contract import Working
from store.engines.git.database import Database
from store.engines.git.engine import GitEngine
from store.errors import InUse, NotFound, Stale
from store.model import ROOT, Access, AttributeChange, Touched
from tests.store.engines.git.desk import NOTE, WRITING, commit, find, names, open_store, put, read, write

_SPAWN = multiprocessing.get_context("spawn")


@dataclass
class Pair:
    """An owner and a gateway with the same branch open."""

    owner: GitEngine
    gateway: GitEngine
    ours: Working
    theirs: Working


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    owner = open_store(tmp_path / "store")
    owner.create_branch("main", None, 1)
    working = owner.working("main")
    working.mkdir(ROOT, b"d", 0o755)
    put(working, b"d/base", b"base content")
    put(working, b"top", b"top content")
    head = commit(owner)
    owner.create_branch("run", head, 1)
    gateway = open_store(tmp_path / "store", "gateway")
    yield Pair(owner, gateway, owner.working("run"), gateway.working("run"))
    gateway.close()
    owner.close()


def test_names_and_attributes_of_one_are_the_others(pair: Pair) -> None:
    node = put(pair.ours, b"d/fresh", b"1")
    assert names(pair.theirs, b"d") == [b"base", b"fresh"]
    pair.theirs.rename(ROOT, b"d", ROOT, b"moved")
    assert pair.ours.path(node) == b"moved/fresh"
    pair.ours.set_attributes(node, AttributeChange(mode=0o700))
    assert pair.theirs.attributes(node).mode == 0o700
    pair.theirs.unlink(find(pair.theirs, b"moved").node, b"fresh")
    with pytest.raises(Stale):
        pair.ours.attributes(node)
    assert names(pair.ours) == [b"moved", b"top"]


def test_nodes_are_the_same_in_every_process_and_after_a_restart(pair: Pair, tmp_path: Path) -> None:
    before = [find(working, path).node for working in (pair.ours, pair.theirs) for path in (b"d", b"d/base", b"top")]
    write(pair.theirs, find(pair.theirs, b"d/base").node, b"changed")
    pair.theirs.rename(ROOT, b"top", ROOT, b"bottom")
    commit(pair.owner, "run")
    after = [find(working, path).node for working in (pair.ours, pair.theirs) for path in (b"d", b"d/base", b"bottom")]
    pair.gateway.close()
    pair.owner.close()
    owner = open_store(tmp_path / "store")
    working = owner.working("run")
    assert before == after == [find(working, path).node for path in (b"d", b"d/base", b"bottom")] * 2
    owner.close()


def test_a_reader_follows_a_file_that_another_process_copies_up(pair: Pair) -> None:
    node = find(pair.ours, b"d/base").node
    reader = pair.ours.open(node)
    assert reader.read(0, 100) == b"base content"
    write(pair.theirs, find(pair.theirs, b"d/base").node, b"NEW!")
    assert reader.read(0, 100) == b"NEW! content"
    assert os.pread(reader.fileno(), 4, 0) == b"NEW!"
    reader.close()


def test_two_processes_that_copy_up_at_once_end_with_one_file(pair: Pair) -> None:
    node = find(pair.ours, b"d/base").node
    assert find(pair.theirs, b"d/base").node == node
    one, other = pair.ours.open(node, WRITING), pair.theirs.open(node, WRITING)
    one.write(0, b"1")
    other.write(1, b"2")
    one.write(2, b"3")
    assert one.read(0, 5) == other.read(0, 5) == b"123e "
    one.close()
    other.close()


def test_appends_of_two_processes_never_overlap(pair: Pair) -> None:
    node = put(pair.ours, b"log", b"")
    handles = [working.open(node, Access(write=True, append=True)) for working in (pair.ours, pair.theirs)]
    for number in range(200):
        handles[number % 2].write(0, b"%04d\n" % number)
    for handle in handles:
        handle.close()
    assert read(pair.ours, b"log") == b"".join(b"%04d\n" % number for number in range(200))


def test_an_open_file_outlives_its_name_wherever_it_is_removed(pair: Pair) -> None:
    node = find(pair.ours, b"top").node
    handle = pair.ours.open(node, WRITING)
    pair.theirs.unlink(ROOT, b"top")
    assert handle.read(0, 3) == b"top"
    handle.write(0, b"TOP")
    assert handle.read(0, 20) == b"TOP content"
    assert pair.ours.attributes(node).links == 0
    assert pair.ours.set_attributes(node, AttributeChange(size=2)).size == 2
    assert handle.read(0, 20) == b"TO"
    handle.close()
    with pytest.raises(Stale):
        pair.ours.attributes(node)


def test_what_was_touched_is_told_to_others_until_two_commits_later(pair: Pair) -> None:
    since = pair.theirs.version()
    put(pair.ours, b"d/fresh", b"1")
    pair.ours.unlink(ROOT, b"top")
    directory = find(pair.ours, b"d").node
    told = pair.theirs.touched(since)
    assert told is not None
    assert {(each.parent, each.name) for each in told if each.name is not None} == {(ROOT, b"d"), (directory, b"fresh"), (ROOT, b"top")}
    assert Touched(None, None, find(pair.theirs, b"d/fresh").node) in told
    commit(pair.owner, "run")
    assert pair.theirs.touched(pair.theirs.version()) == []
    assert pair.theirs.touched(since) is not None
    put(pair.ours, b"more", b"1")
    commit(pair.owner, "run")
    assert pair.theirs.touched(since) is None
    assert names(pair.theirs) == [b"d", b"more"]


def test_a_commit_alone_touches_nothing_that_doors_show(pair: Pair) -> None:
    put(pair.theirs, b"fresh", b"1")
    since = pair.theirs.version()
    commit(pair.owner, "run")
    assert pair.theirs.version() > since
    assert pair.theirs.touched(since) == []


def test_a_write_after_a_commit_of_another_process_is_in_the_next_commit(pair: Pair) -> None:
    node = put(pair.theirs, b"fresh", b"1")
    handle = pair.theirs.open(node, WRITING)
    handle.write(0, b"first")
    commit(pair.owner, "run")
    handle.write(0, b"again")
    second = commit(pair.owner, "run")
    view = pair.owner.view(second)
    assert view.open(view.lookup(ROOT, b"fresh").node).read(0, 10) == b"again"
    handle.close()


def test_a_deleted_branch_is_gone_for_everybody(pair: Pair) -> None:
    put(pair.theirs, b"fresh", b"1")
    pair.owner.delete_branch("run", pair.owner.branch("run").head)
    for call in (pair.theirs.version, lambda: pair.theirs.list(ROOT), lambda: pair.theirs.create(ROOT, b"x", 0o600)):
        with pytest.raises(NotFound):
            call()


def test_a_merge_into_a_branch_shows_in_its_open_working_layers(pair: Pair) -> None:
    node = find(pair.theirs, b"d/base").node
    working = pair.owner.working("main")
    write(working, find(working, b"d/base").node, b"BASE")
    working.unlink(ROOT, b"top")
    theirs = commit(pair.owner)
    put(pair.theirs, b"mine", b"1")
    ours = commit(pair.owner, "run")
    assert pair.owner.merge("run", ours, theirs, NOTE).commit is not None
    assert read(pair.theirs, b"d/base") == b"BASE content"
    assert find(pair.theirs, b"d/base").node == node
    assert names(pair.theirs) == [b"d", b"mine"]
    assert pair.owner.dirty() == {}
    assert pair.theirs.changes() == []


def test_only_the_owner_owns(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(InUse, match=str(os.getpid())):
        open_store(tmp_path / "store")
    with pytest.raises(InUse):
        pair.gateway.maintain(1)


def test_a_gateway_waits_for_an_owner_after_a_restart_of_the_machine(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(InUse):
        open_store(tmp_path / "store", "gateway", boot="another boot")


def _write_until_killed(folder: Path, pipe: Connection) -> None:
    working = open_store(folder, "gateway").working("run")
    handle = working.open(working.create(ROOT, b"log", 0o644).node, Access(write=True, append=True))
    number = 0
    while True:
        handle.write(0, b"%06d\n" % number)
        working.mkdir(ROOT, b"made %d" % number, 0o755)
        pipe.send(number)
        number += 1


def test_what_a_killed_process_was_told_is_there(pair: Pair, tmp_path: Path) -> None:
    receiving, sending = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=_write_until_killed, args=(tmp_path / "store", sending))
    process.start()
    sending.close()
    while receiving.recv() < 300:
        continue
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    last = 300
    while True:
        try:
            last = receiving.recv()
        except EOFError:
            break
    written = read(pair.ours, b"log")
    assert written.startswith(b"".join(b"%06d\n" % number for number in range(last + 1)))
    assert {b"made %d" % number for number in range(last + 1)} <= set(names(pair.ours))
    view = pair.owner.view(commit(pair.owner, "run"))
    assert view.lookup(ROOT, b"log").size == len(written)


def test_changes_of_both_sides_in_any_order_are_seen_by_the_next_call(pair: Pair) -> None:
    expected = set(names(pair.ours))
    for number in range(60):
        mine, yours = (pair.ours, pair.theirs) if number % 3 else (pair.theirs, pair.ours)
        mine.mkdir(ROOT, b"n%d" % number, 0o755)
        expected.add(b"n%d" % number)
        if number % 2:
            yours.rmdir(ROOT, b"n%d" % (number - 1))
            expected.discard(b"n%d" % (number - 1))
        assert set(names(mine)) == expected
        assert set(names(yours)) == expected


def test_changes_of_both_sides_at_once_are_all_seen(pair: Pair) -> None:
    def make(working: Working, side: bytes) -> None:
        for number in range(100):
            node = working.mkdir(ROOT, side + b"%d" % number, 0o755).node
            assert working.lookup(ROOT, side + b"%d" % number).node == node

    before = set(names(pair.ours))
    threads = [threading.Thread(target=make, args=each) for each in ((pair.ours, b"o"), (pair.theirs, b"t"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = before | {side + b"%d" % number for side in (b"o", b"t") for number in range(100)}
    assert set(names(pair.ours)) == expected
    assert set(names(pair.theirs)) == expected


def test_ones_own_changes_cost_no_question(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.ours.mkdir(ROOT, b"first", 0o755)
    asked: list[str] = []
    select = Database.select_one
    monkeypatch.setattr(
        Database, "select_one", lambda self, statement, values=(): asked.append(statement) or select(self, statement, values)
    )
    for number in range(5):
        pair.ours.mkdir(ROOT, b"n%d" % number, 0o755)
        pair.ours.lookup(ROOT, b"n%d" % number)
    assert asked == []
    pair.theirs.mkdir(ROOT, b"theirs", 0o755)
    asked.clear()
    pair.ours.lookup(ROOT, b"theirs")
    assert len(asked) == 1


def test_an_open_file_that_goes_has_what_another_process_wrote_last(pair: Pair) -> None:
    node = find(pair.ours, b"top").node
    handle = pair.ours.open(node)
    write(pair.theirs, find(pair.theirs, b"top").node, b"TOP")
    pair.ours.unlink(ROOT, b"top")
    assert handle.read(0, 99) == b"TOP content"
    handle.close()


def test_an_open_file_that_a_moving_head_removes_has_what_another_process_wrote_last(pair: Pair) -> None:
    handle = pair.ours.open(find(pair.ours, b"top").node)
    write(pair.theirs, find(pair.theirs, b"top").node, b"TOP")
    empty = pair.owner.read_commit(pair.owner.branch("main").head).parents[0]
    pair.owner.move_branch("run", commit(pair.owner, "run"), empty)
    assert handle.read(0, 99) == b"TOP content"
    handle.close()
