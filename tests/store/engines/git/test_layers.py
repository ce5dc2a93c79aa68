"""Layers are shared while they are used, kept for a while when they are not, and never taken from under an open file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engines.git.engine import GitEngine
from store.model import ROOT
from tests.store.engines.git.desk import WRITING, commit, names, open_store, put, read

_MANY = 80


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[GitEngine]:
    made = open_store(tmp_path / "store")
    made.create_branch("main", None, 1)
    yield made
    made.close()


def test_a_file_stays_open_when_its_working_layer_is_closed_and_many_others_are_used(engine: GitEngine) -> None:
    working = engine.working("main")
    node = working.create(ROOT, b"file", 0o644).node
    handle = working.open(node, WRITING)
    working.close()
    head = engine.branch("main").head
    for number in range(_MANY):
        engine.create_branch(f"run/{number}", head, 1)
        with_file = engine.working(f"run/{number}")
        put(with_file, b"own", b"%d" % number)
        with_file.close()
    handle.write(0, b"still here")
    handle.close()
    assert read(engine.working("main"), b"file") == b"still here"
    assert all(read(engine.working(f"run/{number}"), b"own") == b"%d" % number for number in range(_MANY))


def test_idle_branches_hold_few_descriptors(engine: GitEngine) -> None:
    head = engine.branch("main").head
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3 * _MANY):
        engine.create_branch(f"run/{number}", head, 1)
        engine.working(f"run/{number}").close()
    assert len(os.listdir("/proc/self/fd")) - before <= _MANY


def test_a_branch_that_is_made_again_under_its_name_starts_afresh(engine: GitEngine) -> None:
    head = engine.branch("main").head
    engine.create_branch("run", head, 1)
    working = engine.working("run")
    put(working, b"former", b"1")
    working.close()
    engine.delete_branch("run", head)
    engine.create_branch("run", head, 1)
    assert names(engine.working("run")) == []
    put(engine.working("run"), b"next", b"1")
    commit(engine, "run")
    assert engine.branch("main").head == head
