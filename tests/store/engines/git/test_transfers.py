"""In and out through the engine: pointers that are files, files that look like pointers, and round trips."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engines.git import open_engine
from store.engines.git.commands import git_environment, run_git
from store.engines.git.engine import GitEngine
from store.engines.git.large import Pointer, encode_pointer
from store.errors import Exists, HostileTree, ImportFailed
from store.model import ROOT, Access, CommitId, Note, Provenance

WHEN = 1_700_000_000
BIG = b"0123456789abcdef" * (9 << 16)
NOTE = Note("work", Provenance("agent:x"), WHEN)


def quiet(_stage: str, _done: int, _total: int) -> None:
    """Stand where nobody watches the progress."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[GitEngine]:
    made = open_engine(tmp_path / "store", clock=time.time_ns)
    yield made
    made.close()


def read(engine: GitEngine, commit: CommitId, name: bytes) -> bytes:
    tree = engine.view(commit)
    found = tree.lookup(ROOT, name)
    handle = tree.open(found.node)
    try:
        return handle.read(0, found.size)
    finally:
        handle.close()


def commit_file(engine: GitEngine, branch: str, name: bytes, data: bytes) -> CommitId:
    working = engine.working(branch)
    handle = working.open(working.create(ROOT, name, 0o644).node, Access(write=True))
    handle.write(0, data)
    handle.close()
    working.close()
    committed = engine.commit(branch, NOTE)
    assert committed is not None
    return committed.id


def repository_with(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    environment = git_environment({f"GIT_{role}_{what}": "a@x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")})
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "first"]):
        subprocess.run(["git", "-C", str(folder), *arguments], env=environment, check=True)
    return folder


def pointer_to_big(tmp_path: Path) -> bytes:
    other = open_engine(tmp_path / "other", clock=time.time_ns)
    other.create_branch("b", None, WHEN)
    commit_file(other, "b", b"big", BIG)
    other.export_git("b", tmp_path / "other.git", quiet)
    row = other._database.select("SELECT sha256, size FROM large")[0]
    other.close()
    return encode_pointer(Pointer(*row))


def test_a_committed_file_that_spells_a_pointer_stays_itself(engine: GitEngine, tmp_path: Path) -> None:
    spelled = pointer_to_big(tmp_path)
    engine.create_branch("a", None, WHEN)
    secret = commit_file(engine, "a", b"big", BIG)
    forged = commit_file(engine, "a", b"forged", spelled)
    assert read(engine, forged, b"forged") == spelled
    assert read(engine, secret, b"big") == BIG


def test_an_imported_pointer_stays_a_file_when_its_content_comes_later(engine: GitEngine, tmp_path: Path) -> None:
    spelled = pointer_to_big(tmp_path)
    imported = engine.import_git(str(repository_with(tmp_path / "source", {"big": spelled})), "history", WHEN, quiet)
    assert set(imported.passed_over) == {b"big"}
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "real").write_bytes(BIG)
    from_directory = engine.import_directory(tmp_path / "directory", "files", NOTE, quiet)
    engine.create_branch("work", None, WHEN)
    committed = commit_file(engine, "work", b"real", BIG)
    assert read(engine, imported.commit, b"big") == spelled
    assert read(engine, from_directory.commit, b"real") == BIG
    assert read(engine, committed, b"real") == BIG


def test_a_history_goes_out_and_comes_back_with_the_same_identities(engine: GitEngine, tmp_path: Path) -> None:
    engine.create_branch("a", None, WHEN)
    for at in range(3):
        head = commit_file(engine, "a", b"file%d" % at, b"%d" % at)
    engine.create_snapshot("v1", head, WHEN)
    assert engine.export_git("a", tmp_path / "out.git", quiet) == 4
    run_git(tmp_path / "out.git", "fsck", "--strict", "--full")
    assert engine.import_git(str(tmp_path / "out.git"), "again", WHEN, quiet).commit == head
    assert [commit.note for commit in engine.log(head)][:3] == [NOTE] * 3


def test_a_refused_import_leaves_no_branch_and_no_rest(engine: GitEngine, tmp_path: Path) -> None:
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / ".GIT").write_bytes(b"")
    packs = tmp_path / "store" / "repo.git" / "objects" / "pack"
    before = sorted(packs.iterdir())
    with pytest.raises(HostileTree):
        engine.import_directory(tmp_path / "hostile", "bad", NOTE, quiet)
    with pytest.raises(ImportFailed):
        engine.import_git(str(tmp_path / "hostile"), "bad", WHEN, quiet)
    assert (engine.branches(), sorted(packs.iterdir()), os.listdir(tmp_path / "store" / "tmp")) == ([], before, [])


def test_an_import_never_replaces_a_branch(engine: GitEngine, tmp_path: Path) -> None:
    engine.create_branch("a", None, WHEN)
    (tmp_path / "source").mkdir()
    with pytest.raises(Exists):
        engine.import_directory(tmp_path / "source", "a", NOTE, quiet)
    with pytest.raises(Exists):
        engine.import_git(str(tmp_path / "source"), "a", WHEN, quiet)


def test_maintenance_frees_a_deleted_large_file_only_once_it_is_old(engine: GitEngine, tmp_path: Path) -> None:
    engine.create_branch("a", None, WHEN)
    head = commit_file(engine, "a", b"big", BIG)
    engine.delete_branch("a", head)
    engine.maintain(int(time.time()))
    chunks = tmp_path / "store" / "lo"
    assert len(list(chunks.glob("[0-9a-f][0-9a-f]/*"))) > 0
    for path in list((tmp_path / "store" / "repo.git" / "objects" / "pack").iterdir()):
        os.utime(path, (1, 1))
        if path.suffix == ".mtimes":
            path.unlink()
    engine.create_branch("other", None, WHEN)
    freed = engine.maintain(int(time.time()))
    assert freed.bytes > 0
    assert list(chunks.glob("[0-9a-f][0-9a-f]/*")) == []
