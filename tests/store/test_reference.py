from __future__ import annotations

from pathlib import Path

from store.conformance import Bench, Subject
from store.conformance.bench import find, put_file, see_files
from store.model import ROOT


def test_two_names_of_one_file_part_when_a_commit_tells_them_apart(tmp_path: Path) -> None:
    subject = Subject("reference", tmp_path)
    bench = Bench(subject, subject.open())
    working = bench.start()
    node = put_file(working, b"one", b"same")
    working.link(node, ROOT, b"two")
    linked = bench.commit().id
    bench.start("apart", linked)
    put_file(bench.engine.working("apart"), b"two", b"else")
    bench.engine.move_branch("main", linked, bench.commit("apart").id)
    assert see_files(working) == {b"one": b"same", b"two": b"else"}
    assert working.changes() == []
    assert find(working, b"one").links == 1
