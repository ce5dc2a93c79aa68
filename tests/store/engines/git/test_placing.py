"""Whole files: what the disk keeps of them, and how few syncs they take."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.contract import Joined
from store.engines.git import open_engine
from store.engines.git.engine import GitEngine
from store.engines.git.working import GitWorking
from store.engines.git.writeback import STEP, Writeback
from store.errors import NotFound
from store.model import ROOT
from tests.store.engines.git.desk import commit, find, put, read, write

LARGE = bytes(range(256)) * 400


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[GitEngine]:
    opened = open_engine(tmp_path / "store", clock=time.time_ns)
    opened.create_branch("main", None, 0)
    yield opened
    opened.close()


@pytest.fixture
def working(engine: GitEngine) -> GitWorking:
    return engine.working("main")


def uppers(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "store" / "up").glob("*/[0-9]*")}


def test_a_copy_of_what_is_committed_takes_no_file(engine: GitEngine, working: GitWorking, tmp_path: Path) -> None:
    put(working, b"f", LARGE)
    commit(engine)
    before = uppers(tmp_path)
    working.copy(find(working, b"f").node, ROOT, b"copy")
    assert uppers(tmp_path) == before
    assert read(working, b"copy") == LARGE


def test_what_a_refusal_leaves_takes_no_room(working: GitWorking, tmp_path: Path) -> None:
    put(working, b"f", b"1")
    before = uppers(tmp_path)

    def refuse(found: object) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        working.place(ROOT, b"f", 0o644, io.BytesIO(LARGE), condition=refuse)
    with pytest.raises(LookupError):
        working.copy(find(working, b"f").node, ROOT, b"copy", condition=refuse)
    assert uppers(tmp_path) == before


def test_a_copy_is_whole_when_the_file_changes_while_it_is_made(working: GitWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    node = put(working, b"f", b"1" * 10)
    copy, calls = os.copy_file_range, []

    def change(*arguments: int) -> int:
        calls.append(arguments)
        if len(calls) == 1:
            write(working, node, b"2" * 10)
        return copy(*arguments)

    monkeypatch.setattr(os, "copy_file_range", change)
    working.copy(node, ROOT, b"copy")
    assert read(working, b"copy") == b"2" * 10
    assert len(calls) == 2


def test_staged_bytes_go_with_their_branch(engine: GitEngine, working: GitWorking, tmp_path: Path) -> None:
    staged = working.stage(io.BytesIO(LARGE))
    head = engine.branch("main").head
    engine.delete_branch("main", head)
    assert uppers(tmp_path) == set()
    with pytest.raises(NotFound):
        working.staged(staged.id)
    with pytest.raises(NotFound):
        working.stage(io.BytesIO(LARGE))


def test_parts_are_joined_by_the_kernel_where_they_end(working: GitWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    copy = os.copy_file_range

    def count(source: int, target: int, size: int, start: int, end: int) -> int:
        copied.append(end)
        return copy(source, target, size, start, end)

    monkeypatch.setattr(os, "copy_file_range", count)
    parts = [working.staged(working.stage(io.BytesIO(part)).id) for part in (LARGE, b"odd", LARGE)]
    working.place(ROOT, b"f", 0o644, Joined(parts))
    assert read(working, b"f") == LARGE + b"odd" + LARGE
    assert copied == [0, len(LARGE), len(LARGE) + 3]
    for part in parts:
        part.close()


def test_a_long_file_is_on_its_way_to_the_disk_while_it_comes_in(tmp_path: Path) -> None:
    with open(tmp_path / "f", "w+b", buffering=0) as file:
        writeback = Writeback(file.fileno())
        for end in range(0, 3 * STEP + 1, STEP // 2):
            file.truncate(end)
            writeback.note(end)
            assert end - writeback._begun < STEP
        os.fdatasync(file.fileno())


def test_a_file_that_comes_in_many_pieces_is_whole(working: GitWorking) -> None:
    data = os.urandom(1 << 16) * 300
    working.place(ROOT, b"f", 0o644, io.BytesIO(data))
    assert read(working, b"f") == data
