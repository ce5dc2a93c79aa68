"""Importing a directory: everything that a tree can hold comes in, nothing from outside does, the rest is named."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from store.engines.git.commands import run_git
from store.engines.git.imports import DEEPEST, ImportedTree, import_tree
from store.engines.git.large import LargeStore, Pointer, encode_pointer
from store.engines.git.packs import PackWriter
from store.errors import HostileTree, ImportFailed, NoSpace


def quiet(_stage: str, _done: int, _total: int) -> None:
    """Stand where nobody watches the progress."""


class Target:
    """A repository and a large store to import into."""

    def __init__(self, folder: Path) -> None:
        self.git_dir = folder / "repo.git"
        run_git(None, "init", "--bare", "--quiet", str(self.git_dir))
        self.large = LargeStore(folder / "lo")

    def take(self, source: Path, avoid: Path | None = None) -> ImportedTree:
        with self.large.writing(), PackWriter(self.git_dir / "objects" / "pack") as pack:
            return import_tree(source, pack, self.large, quiet, avoid=avoid)

    def paths(self, imported: ImportedTree) -> dict[bytes, tuple[bytes, bytes]]:
        listed = run_git(self.git_dir, "ls-tree", "-r", "-t", "-z", imported.tree.hex()).split(b"\0")[:-1]
        rows = [line.split(b"\t", 1) for line in listed]
        return {path: (facts.split()[0], facts.split()[2]) for facts, path in rows}

    def packed(self) -> bytes:
        return run_git(self.git_dir, "cat-file", "--batch-all-objects", "--batch")


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    return path


def test_files_executables_symlinks_and_empty_directories_come_in(target: Target, source: Path) -> None:
    (source / "plain").write_bytes(b"text\n")
    (source / "run").write_bytes(b"#!/bin/sh\n")
    (source / "run").chmod(0o755)
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "sub" / "link").symlink_to("../plain")
    (source / "outside").symlink_to("/etc/passwd")
    odd = os.fsencode(source) + b"/\xff\xfe new\nline \xc3\xa9"
    Path(os.fsdecode(odd)).write_bytes(b"")
    os.link(source / "plain", source / "sub" / "same")
    imported = target.take(source)
    modes = {path: mode for path, (mode, _) in target.paths(imported).items()}
    assert modes == {
        b"plain": b"100644",
        b"run": b"100755",
        b"sub": b"040000",
        b"sub/empty": b"040000",
        b"sub/link": b"120000",
        b"sub/same": b"100644",
        b"outside": b"120000",
        b"\xff\xfe new\nline \xc3\xa9": b"100644",
    }
    assert (imported.files, imported.size, imported.passed_over) == (6, 39, {})
    assert run_git(target.git_dir, "cat-file", "blob", f"{imported.tree.hex()}:outside") == b"/etc/passwd"
    run_git(target.git_dir, "fsck", "--strict", "--full")


def test_what_no_tree_can_hold_is_named_with_the_reason(target: Target, source: Path) -> None:
    run_git(None, "init", "--quiet", str(source))
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(source / "socket"))
    (source / "sub").mkdir()
    run_git(None, "init", "--quiet", str(source / "sub"))
    (source / "marked").write_bytes(b"content")
    os.setxattr(source / "marked", "user.colour", b"blue")
    imported = target.take(source)
    assert set(imported.passed_over) == {b".git", b"pipe", b"socket", b"sub/.git", b"marked"}
    assert all(imported.passed_over.values())
    assert set(target.paths(imported)) == {b"marked", b"sub"}


@pytest.mark.parametrize("name", [".GIT", "git~1", ".g\u200cit", ".git ", ".git::$INDEX_ALLOCATION", "..\\..\\x"])
def test_a_name_that_some_checkout_takes_for_another_refuses_the_import(target: Target, source: Path, name: str) -> None:
    (source / "sub").mkdir()
    (source / "sub" / name).write_bytes(b"")
    with pytest.raises(HostileTree):
        target.take(source)
    assert list((target.git_dir / "objects" / "pack").iterdir()) == []


def test_large_files_and_files_that_look_like_pointers_go_to_the_large_store(target: Target, source: Path) -> None:
    (source / "big").write_bytes(bytes(9 << 20))
    lookalike = encode_pointer(Pointer(b"\1" * 32, 5))
    (source / "lookalike").write_bytes(lookalike)
    imported = target.take(source)
    contents = {
        path: b"".join(target.large.stream(imported.pointers[bytes.fromhex(oid.decode())]))
        for path, (_, oid) in target.paths(imported).items()
    }
    assert contents == {b"big": bytes(9 << 20), b"lookalike": lookalike}
    assert imported.size == (9 << 20) + len(lookalike)


def test_the_store_itself_is_passed_over(target: Target, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    imported = target.take(tmp_path, avoid=target.git_dir)
    assert b"repo.git" in imported.passed_over
    assert not any(path.startswith(b"repo.git") for path in target.paths(imported))


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_source_that_is_no_directory_is_refused(target: Target, tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / kind).write_bytes(b"")
    with pytest.raises(ImportFailed):
        target.take(tmp_path / kind)


def test_nesting_has_a_limit(target: Target, source: Path) -> None:
    descriptor = os.open(source, os.O_RDONLY)
    for _ in range(DEEPEST + 1):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    with pytest.raises(ImportFailed):
        target.take(source)


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_name_swapped_for_a_symlink_during_the_walk_never_leads_outside(target: Target, tmp_path: Path, source: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "inner").write_bytes(b"TOP SECRET")
    aim = secret if kind == "directory" else secret / "inner"
    honest, trap = tmp_path / "honest", tmp_path / "trap"
    if kind == "directory":
        honest.mkdir()
        (honest / "inner").write_bytes(b"harmless")
    else:
        honest.write_bytes(b"harmless")
    trap.symlink_to(aim)
    place = source / "name"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for origin in (honest, trap):
                origin.rename(place)
                place.rename(origin)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(150):
            target.take(source)
    finally:
        stop.set()
        swapping.join()
    packed = target.packed()
    assert b"harmless" in packed
    assert b"TOP SECRET" not in packed


@pytest.mark.root
def test_a_full_disk_fails_the_import_and_skips_no_file(tmp_path: Path, source: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(small)], check=True)
    try:
        target = Target(small)
        for name, size in (("ordinary", 5 << 20), ("large", 9 << 20)):
            (source / name).write_bytes(os.urandom(size))
            with pytest.raises(NoSpace):
                target.take(source)
            (source / name).unlink()
        assert list((target.git_dir / "objects" / "pack").iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_files_on_a_system_without_extended_attributes_come_in(target: Target, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int) -> list[str]:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    (source / "file").write_bytes(b"content")
    monkeypatch.setattr(os, "listxattr", refuse)
    imported = target.take(source)
    assert (imported.files, imported.passed_over) == (1, {})


def test_progress_ends_with_the_whole(target: Target, source: Path) -> None:
    for at in range(1200):
        (source / f"f{at}").write_bytes(b"%d" % at)
    calls: list[tuple[str, int, int]] = []
    with target.large.writing(), PackWriter(target.git_dir / "objects" / "pack") as pack:
        import_tree(source, pack, target.large, lambda *call: calls.append(call))
    assert calls == [("import", 500, 0), ("import", 1000, 0), ("import", 1200, 1200)]
