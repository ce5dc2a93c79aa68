"""After a restart of the machine: what was synced and committed is there, what cannot be trusted is not trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.contract import Working
from store.engines.git.engine import GitEngine
from store.engines.git.ownership import _file_system, refuse_network
from store.model import ROOT
from tests.store.engines.git.desk import WRITING, commit, find, names, open_store, put, read, write


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store with a committed file, an uncommitted change of another, and a file that no commit holds yet."""
    engine = open_store(tmp_path / "store")
    engine.create_branch("main", None, 1)
    working = engine.working("main")
    put(working, b"kept", b"committed")
    put(working, b"changed", b"old content")
    commit(engine)
    node = find(working, b"changed").node
    write(working, node, b"new content, longer")
    put(working, b"fresh", b"never committed")
    working.sync()
    engine.close()
    return tmp_path / "store"


def uppers(store: Path) -> dict[bytes, Path]:
    """Return the upper files by their content."""
    return {path.read_bytes(): path for path in (store / "up").glob("*/[0-9]*")}


def restart(store: Path) -> tuple[GitEngine, Working]:
    engine = open_store(store, boot="the next boot")
    return engine, engine.working("main")


def test_synced_work_is_there_after_a_restart(store: Path) -> None:
    engine, working = restart(store)
    assert [read(working, name) for name in names(working)] == [b"new content, longer", b"never committed", b"committed"]
    assert engine.recovered() == ()
    engine.close()


def test_committed_content_does_not_depend_on_upper_files_that_the_machine_lost(store: Path) -> None:
    uppers(store)[b"committed"].write_bytes(b"")
    engine, working = restart(store)
    assert read(working, b"kept") == b"committed"
    engine.close()


def test_an_uncommitted_file_that_lost_its_end_goes_back_to_the_commit_and_is_reported(store: Path) -> None:
    uppers(store)[b"new content, longer"].write_bytes(b"new")
    engine, working = restart(store)
    assert read(working, b"changed") == b"old content"
    assert len(engine.recovered()) == 1
    assert read(working, b"fresh") == b"never committed"
    engine.close()


def test_a_file_that_no_commit_holds_stays_with_what_is_left_and_is_reported(store: Path) -> None:
    uppers(store)[b"never committed"].unlink()
    engine, working = restart(store)
    assert read(working, b"fresh") == b""
    assert len(engine.recovered()) == 1
    write(working, find(working, b"fresh").node, b"again")
    assert read(working, b"fresh") == b"again"
    engine.close()


def test_the_cache_is_dropped_after_a_restart_and_kept_otherwise(store: Path) -> None:
    engine = open_store(store)
    view = engine.view(engine.branch("main").head)
    handle = view.open(view.lookup(ROOT, b"kept").node)
    handle.fileno()
    handle.close()
    engine.close()
    (cached,) = (store / "cas").glob("*/*")
    cached.chmod(0o644)
    cached.write_bytes(b"")
    engine = open_store(store)
    assert cached.exists()
    engine.close()
    engine, _ = restart(store)
    view = engine.view(engine.branch("main").head)
    assert view.open(view.lookup(ROOT, b"kept").node).read(0, 20) == b"committed"
    engine.close()


def test_a_restart_leaves_identities_and_dirty_branches_as_they_were(store: Path) -> None:
    engine = open_store(store)
    before = [find(engine.working("main"), name).node for name in (b"kept", b"changed", b"fresh")]
    assert list(engine.dirty()) == ["main"]
    engine.close()
    engine, working = restart(store)
    assert [find(working, name).node for name in (b"kept", b"changed", b"fresh")] == before
    assert list(engine.dirty()) == ["main"]
    commit(engine)
    assert engine.dirty() == {}
    engine.close()


def test_an_open_handle_is_no_obstacle_to_closing_and_reopening(store: Path) -> None:
    engine = open_store(store)
    working = engine.working("main")
    handle = working.open(find(working, b"kept").node, WRITING)
    handle.write(0, b"COMMITTED")
    handle.sync()
    engine.close()
    engine, working = restart(store)
    assert read(working, b"kept") == b"COMMITTED"
    engine.close()


def test_a_repository_that_was_not_finished_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "store" / "tmp" / "repo.git").mkdir(parents=True)
    engine = open_store(tmp_path / "store")
    engine.create_branch("main", None, 1)
    engine.maintain(1)
    engine.close()


def test_the_kind_of_a_file_system_is_known(tmp_path: Path) -> None:
    assert _file_system(Path("/proc")) == 0x9FA0
    refuse_network(tmp_path)


def test_what_is_committed_keeps_its_identity_when_the_machine_starts_again(tmp_path: Path) -> None:
    engine = open_store(tmp_path, boot="one")
    engine.create_branch("main", None, 0)
    put(engine.working("main"), b"f", b"1")
    commit(engine)
    before = find(engine.working("main"), b"f").content
    engine.close()
    engine = open_store(tmp_path, boot="two")
    assert find(engine.working("main"), b"f").content == before
    write(engine.working("main"), find(engine.working("main"), b"f").node, b"2")
    assert find(engine.working("main"), b"f").content != before
    engine.close()
