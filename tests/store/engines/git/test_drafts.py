"""Small files that are put whole: no file for a file, nothing lost, nothing left behind."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engines.git.caches import RecentMap
from store.engines.git.drafts import LARGEST, fits, read_beginning
from store.engines.git.engine import GitEngine
from store.engines.git.large import Pointer, encode_pointer
from store.engines.git.working import GitWorking
from store.errors import NotPermitted
from store.model import ROOT, AttributeChange, NodeId
from tests.store.engines.git.desk import commit, find, open_store, read, write


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[GitEngine]:
    opened = open_store(tmp_path / "store")
    opened.create_branch("main", None, 0)
    yield opened
    opened.close()


@pytest.fixture
def working(engine: GitEngine) -> GitWorking:
    return engine.working("main")


def place(working: GitWorking, name: bytes, data: bytes, parent: NodeId = ROOT) -> NodeId:
    return working.place(parent, name, 0o644, io.BytesIO(data)).node


def drafts(engine: GitEngine) -> list[bytes]:
    return [row[0] for row in engine._database.select("SELECT data FROM draft ORDER BY id")]


def uppers(tmp_path: Path) -> int:
    return sum(1 for _ in (tmp_path / "store" / "up").glob("*/[0-9]*"))


def test_a_small_file_takes_no_file_until_it_is_written_to(engine: GitEngine, working: GitWorking, tmp_path: Path) -> None:
    node = place(working, b"f", b"1" * LARGEST)
    assert uppers(tmp_path) == 0
    assert read(working, b"f") == b"1" * LARGEST
    write(working, node, b"2")
    assert uppers(tmp_path) == 1
    assert read(working, b"f") == b"2" + b"1" * (LARGEST - 1)
    place(working, b"larger", b"3" * (LARGEST + 1))
    assert uppers(tmp_path) == 2
    assert read(working, b"larger") == b"3" * (LARGEST + 1)


def test_a_commit_holds_the_drafts_and_drops_what_nothing_names(engine: GitEngine, working: GitWorking) -> None:
    for data in (b"1", b"2", b"3"):
        place(working, b"f", data)
    place(working, b"g", b"3")
    assert drafts(engine) == [b"1", b"2", b"3"]
    head = commit(engine)
    assert drafts(engine) == []
    assert read(working, b"f") == read(working, b"g") == b"3"
    engine.maintain(0)
    view = engine.view(head)
    handle = view.open(view.lookup(ROOT, b"f").node)
    assert handle.read(0, 9) == b"3"
    handle.close()


def test_many_drafts_are_committed_like_many_files(engine: GitEngine, working: GitWorking) -> None:
    for number in range(100):
        place(working, b"%d" % number, b"%d" % number * 20_000)
    commit(engine)
    assert all(read(working, b"%d" % number) == b"%d" % number * 20_000 for number in range(100))
    assert (drafts(engine), working.changes()) == ([], [])


def test_what_no_commit_can_hold_keeps_its_draft(engine: GitEngine, working: GitWorking) -> None:
    folder = working.mkdir(ROOT, b".git", 0o755).node
    place(working, b"config", b"theirs", folder)
    place(working, b"f", b"1")
    commit(engine)
    place(working, b"f", b"2")
    commit(engine)
    assert drafts(engine) == [b"theirs"]
    assert read(working, b".git/config") == b"theirs"
    working.rename(folder, b"config", ROOT, b"config")
    head = commit(engine)
    assert drafts(engine) == []
    assert find(engine.view(head), b"config").size == 6  # type: ignore[arg-type]


def test_drafts_of_one_branch_outlive_another_s_commit_and_end_with_their_own(engine: GitEngine, working: GitWorking) -> None:
    engine.create_branch("other", None, 0)
    other = engine.working("other")
    for layer in (working, other):
        place(layer, b"f", b"same")
    commit(engine)
    assert drafts(engine) == [b"same"]
    engine.delete_branch("main", engine.branch("main").head)
    assert read(other, b"f") == b"same"
    engine.delete_branch("other", engine.branch("other").head)
    assert drafts(engine) == []


def test_a_copy_of_a_draft_is_as_good_as_the_draft(engine: GitEngine, working: GitWorking, tmp_path: Path) -> None:
    working.copy(place(working, b"f", b"1"), ROOT, b"copy")
    place(working, b"f", b"2")
    commit(engine)
    assert (read(working, b"copy"), read(working, b"f"), uppers(tmp_path)) == (b"1", b"2", 0)


def test_a_placed_file_is_there_after_the_machine_started_again(engine: GitEngine, working: GitWorking, tmp_path: Path) -> None:
    place(working, b"f", b"1")
    content = find(working, b"f").content
    engine.close()
    again = open_store(tmp_path / "store", boot="the next boot")
    assert again.recovered() == ()
    assert (read(again.working("main"), b"f"), find(again.working("main"), b"f").content) == (b"1", content)
    commit(again)
    assert find(again.working("main"), b"f").content == content
    again.close()


def test_a_file_that_spells_a_pointer_is_itself(engine: GitEngine, working: GitWorking) -> None:
    spelled = encode_pointer(Pointer(bytes(32), 12_345_678))
    assert not fits(spelled)
    place(working, b"f", spelled)
    commit(engine)
    assert (read(working, b"f"), find(working, b"f").size) == (spelled, len(spelled))


def test_the_beginning_is_read_in_whatever_pieces_it_comes() -> None:
    class Dripping(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 1_000))

    assert read_beginning(Dripping(b"1" * 5_500)) == b"1" * 5_500
    assert len(read_beginning(Dripping(b"1" * (LARGEST + 5)))) == LARGEST + 1
    assert read_beginning(Dripping(b"")) == b""


def test_a_small_file_becomes_a_file_when_somebody_wants_a_descriptor_or_memory_forgot_it(engine: GitEngine, working: GitWorking) -> None:
    node = place(working, b"f", b"content")
    handle = working.open(node)
    assert handle.read(2, 3) == b"nte"
    cached = list((Path(engine._cache._folder)).glob("*/*"))
    assert cached == []
    descriptor = handle.fileno()
    assert os.pread(descriptor, 99, 0) == b"content"
    handle.close()
    place(working, b"g", b"another")
    assert read(working, b"g") == b"another"
    engine._cache._small = RecentMap(100, len)
    assert read(working, b"g") == b"another"
    assert sorted(path.read_bytes() for path in Path(engine._cache._folder).glob("*/*")) == [b"another", b"content"]


def test_a_commit_s_small_file_is_read_from_memory_and_lends_a_descriptor(engine: GitEngine, working: GitWorking) -> None:
    place(working, b"f", b"content")
    view = engine.view(commit(engine))
    handle = view.open(view.lookup(ROOT, b"f").node)
    assert (handle.read(0, 3), handle.read(3, 99), handle.read(99, 1)) == (b"con", b"tent", b"")
    assert os.pread(handle.fileno(), 99, 0) == b"content"
    with pytest.raises(NotPermitted):
        handle.write(0, b"x")
    handle.sync()
    handle.close()
    handle.close()


def test_a_file_that_is_written_while_it_is_open_is_read_as_it_becomes(working: GitWorking) -> None:
    node = place(working, b"f", b"0123456789")
    reader = working.open(node)
    assert reader.read(0, 99) == b"0123456789"
    write(working, node, b"ab", 3)
    assert reader.read(0, 99) == b"012ab56789"
    working.set_attributes(node, AttributeChange(size=4))
    assert reader.read(0, 99) == b"012a"
    place(working, b"f", b"else")
    assert reader.read(0, 99) == b"012a"
    reader.close()
