"""Exports: a commit as a directory that equals what was imported, a branch as a repository that plain git clones."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from store.engines.git.clones import MAP_FILE, Outgoing, export_history
from store.engines.git.commands import git_environment, run_git
from store.engines.git.exports import export_tree
from store.engines.git.imports import import_tree
from store.engines.git.large import LargeStore, Pointer, encode_pointer
from store.engines.git.objects import (
    EMPTY_TREE,
    GITLINK,
    CommitData,
    Kind,
    compose_commit,
    encode_tree,
    make_object,
    parse_commit,
    parse_tree,
)
from store.engines.git.packs import PackWriter, write_pack
from store.errors import Corrupt, Exists, StoreError
from store.model import Note, Provenance
from store.trees import DIRECTORY, SYMLINK, Listing, TreeEntry

WHEN = 1_600_000_000


def quiet(_stage: str, _done: int, _total: int) -> None:
    """Stand where nobody watches the progress."""


class Packed:
    """Committed content as the engine reads it, straight from a repository and a large store."""

    def __init__(self, folder: Path) -> None:
        self.git_dir = folder / "store.git"
        self.packs = self.git_dir / "objects" / "pack"
        self.large = LargeStore(folder / "lo")
        self.pointers: dict[bytes, Pointer] = {}
        run_git(None, "init", "--bare", "--quiet", str(self.git_dir))

    def read(self, oid: bytes) -> tuple[int, bytes]:
        kind = run_git(self.git_dir, "cat-file", "-t", oid.hex()).decode().strip()
        return Kind[kind.upper()], run_git(self.git_dir, "cat-file", kind, oid.hex())

    def tree(self, oid: bytes) -> Listing:
        return parse_tree(self.read(oid)[1])

    def commit(self, oid: bytes) -> CommitData:
        return parse_commit(self.read(oid)[1])

    def pointer(self, oid: bytes) -> Pointer | None:
        return self.pointers.get(oid)

    def size(self, oid: bytes) -> int:
        return sum(len(piece) for piece in self.chunks(oid))

    def chunks(self, oid: bytes) -> Iterator[bytes]:
        pointer = self.pointer(oid)
        return iter([self.read(oid)[1]]) if pointer is None else self.large.stream(pointer)

    def take(self, source: Path) -> bytes:
        """Import a directory and return its tree."""
        with self.large.writing(), PackWriter(self.packs) as pack:
            imported = import_tree(source, pack, self.large, quiet)
        self.pointers |= imported.pointers
        return imported.tree

    def add_commit(self, tree: bytes, *parents: bytes, message: str = "work") -> bytes:
        made = compose_commit(tree, parents, Note(message, Provenance("agent:x", run="r1"), WHEN))
        write_pack(self.packs, [made])
        return made.oid

    def add_tree(self, listing: Mapping[bytes, TreeEntry]) -> bytes:
        made = make_object(Kind.TREE, encode_tree(listing))
        write_pack(self.packs, [made])
        return made.oid


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    return Packed(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    (path / "sub" / "empty").mkdir(parents=True)
    (path / "plain").write_bytes(b"text\n")
    (path / "run").write_bytes(b"#!/bin/sh\n")
    (path / "run").chmod(0o755)
    (path / "sub" / "link").symlink_to("/etc/passwd")
    Path(os.fsdecode(os.fsencode(path) + b"/\xff\xfe")).write_bytes(b"\0")
    return path


def described(folder: Path) -> dict[bytes, tuple[str, bytes]]:
    """Return every path below a folder with what it is and holds."""
    found = {}
    for place in sorted(folder.rglob("*")):
        path = os.fsencode(place.relative_to(folder))
        if place.is_symlink():
            found[path] = ("link", os.readlink(os.fsencode(place)))
        elif place.is_dir():
            found[path] = ("directory", b"")
        else:
            found[path] = ("executable" if os.access(place, os.X_OK) else "file", place.read_bytes())
    return found


def clone(repository: Path, target: Path) -> Path:
    environment = {**git_environment(), "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", "clone", "--quiet", str(repository), str(target)], env=environment, check=True, capture_output=True)
    return target


def test_a_directory_comes_out_as_it_went_in(packed: Packed, source: Path, tmp_path: Path) -> None:
    (source / "big").write_bytes(random.Random(1).randbytes(9 << 20))
    target = tmp_path / "target"
    assert export_tree(packed, packed.take(source), WHEN, target, quiet) == 5
    assert described(target) == described(source)
    assert {place.lstat().st_mtime for place in [target, *target.rglob("*")]} == {WHEN}


def test_an_empty_target_is_filled_and_any_other_refused(packed: Packed, source: Path, tmp_path: Path) -> None:
    tree = packed.take(source)
    (tmp_path / "empty").mkdir()
    export_tree(packed, tree, WHEN, tmp_path / "empty", quiet)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for taken in ("empty", "file"):
        with pytest.raises(Exists):
            export_tree(packed, tree, WHEN, tmp_path / taken, quiet)
    before = described(tmp_path / "empty")
    with pytest.raises(Exception, match="link"):
        export_tree(packed, tree, WHEN, tmp_path / "link", quiet)
    assert described(tmp_path / "empty") == before


@pytest.mark.parametrize("name", [b"..", b"a/b", b"", b"."])
def test_a_tree_that_leads_outside_is_corrupt(tmp_path: Path, name: bytes) -> None:
    class Hostile(Packed):
        def tree(self, oid: bytes) -> Listing:
            return {name: TreeEntry(DIRECTORY, EMPTY_TREE)}

    with pytest.raises(Corrupt):
        export_tree(Hostile(tmp_path), EMPTY_TREE, WHEN, tmp_path / "fresh", quiet)
    assert list((tmp_path / "fresh").iterdir()) == []


def test_a_directory_swapped_for_a_symlink_is_not_followed(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()

    class Swapping(Packed):
        def tree(self, oid: bytes) -> Listing:
            if oid == last:
                (target / "first").rmdir()
                (target / "first").symlink_to(outside)
            return super().tree(oid)

    packed = Swapping(tmp_path)
    last = packed.add_tree({b"marker": TreeEntry(DIRECTORY, EMPTY_TREE)})
    write_pack(packed.packs, [make_object(Kind.TREE, b"")])
    first = packed.add_tree({b"file": TreeEntry(DIRECTORY, EMPTY_TREE)})
    tree = packed.add_tree({b"first": TreeEntry(DIRECTORY, first), b"last": TreeEntry(DIRECTORY, last)})
    with pytest.raises(StoreError):
        export_tree(packed, tree, WHEN, target, quiet)
    assert list(outside.iterdir()) == []
    assert (target / "last" / "marker").is_dir()


def test_deep_trees_and_submodules_come_out(packed: Packed, tmp_path: Path) -> None:
    tree = packed.add_tree({b"module": TreeEntry(GITLINK, b"\1" * 20)})
    for _ in range(60):
        tree = packed.add_tree({b"d": TreeEntry(DIRECTORY, tree)})
    export_tree(packed, tree, WHEN, tmp_path / "target", quiet)
    assert (tmp_path / "target" / "/".join(["d"] * 60) / "module").is_dir()


def test_a_history_without_large_files_goes_out_identical(packed: Packed, source: Path, tmp_path: Path) -> None:
    first = packed.add_commit(packed.take(source))
    (source / "plain").write_bytes(b"changed\n")
    second = packed.add_commit(packed.take(source), first)
    elsewhere = packed.add_commit(packed.take(tmp_path / "source" / "sub"), first)
    outgoing = Outgoing("team/main", second, {"v1": first, "other": elsewhere})
    assert export_history(packed, packed.git_dir, outgoing, tmp_path / "out.git", quiet, large=True) == 2
    run_git(tmp_path / "out.git", "fsck", "--strict", "--full")
    assert not (tmp_path / "out.git" / MAP_FILE).exists()
    refs = run_git(tmp_path / "out.git", "for-each-ref", "--format=%(refname) %(objectname)").decode().split()
    assert refs == ["refs/heads/team/main", second.hex(), "refs/tags/v1", first.hex()]
    cloned = clone(tmp_path / "out.git", tmp_path / "clone")
    (cloned / ".git").rename(tmp_path / "clone.git")
    (source / "sub" / "empty").rmdir()
    assert described(cloned) == described(source)


def test_large_files_go_out_as_blobs_and_the_map_tells_which_commits_changed(packed: Packed, source: Path, tmp_path: Path) -> None:
    first = packed.add_commit(packed.take(source))
    big = random.Random(2).randbytes(9 << 20)
    (source / "sub" / "big").write_bytes(big)
    (source / "lookalike").write_bytes(encode_pointer(Pointer(b"\1" * 32, 7)))
    second = packed.add_commit(packed.take(source), first)
    (source / "plain").write_bytes(b"changed\n")
    third = packed.add_commit(packed.take(source), second)
    outgoing = Outgoing("main", third, {"v1": first, "v2": second})
    assert export_history(packed, packed.git_dir, outgoing, tmp_path / "out.git", quiet, large=True) == 3
    run_git(tmp_path / "out.git", "fsck", "--strict", "--full")
    listed = json.loads((tmp_path / "out.git" / MAP_FILE).read_text())["rewritten"]
    head = run_git(tmp_path / "out.git", "rev-parse", "main").decode().strip()
    assert set(listed) == {second.hex(), third.hex()}
    assert listed[third.hex()] == head
    assert run_git(tmp_path / "out.git", "rev-parse", "v1", "v2").decode().split() == [first.hex(), listed[second.hex()]]
    cloned = clone(tmp_path / "out.git", tmp_path / "clone")
    assert (cloned / "sub" / "big").read_bytes() == big
    assert (cloned / "lookalike").read_bytes() == encode_pointer(Pointer(b"\1" * 32, 7))
    trailers = run_git(tmp_path / "out.git", "log", "-1", "--format=%(trailers:key=Nas-Run,valueonly)", "main")
    assert trailers.strip() == b"r1"


def test_a_symlink_that_spells_a_pointer_stays_a_symlink(packed: Packed, tmp_path: Path) -> None:
    pointer = Pointer(b"\1" * 32, 7)
    blob = make_object(Kind.BLOB, encode_pointer(pointer))
    write_pack(packed.packs, [blob])
    packed.pointers[blob.oid] = pointer
    head = packed.add_commit(packed.add_tree({b"link": TreeEntry(SYMLINK, blob.oid)}))
    export_history(packed, packed.git_dir, Outgoing("main", head, {}), tmp_path / "out.git", quiet, large=True)
    assert run_git(tmp_path / "out.git", "rev-parse", "main").decode().strip() == head.hex()


def test_a_rewritten_commit_loses_the_signature_that_no_longer_fits(packed: Packed, source: Path, tmp_path: Path) -> None:
    (source / "big").write_bytes(bytes(9 << 20))
    raw = parse_commit(packed.read(packed.add_commit(packed.take(source)))[1])
    signed = b"tree " + raw.tree.hex().encode() + b"\nauthor " + raw.author + b"\ncommitter " + raw.committer
    signed += b"\nencoding UTF-8\ngpgsig -----BEGIN\n line\n -----END\n\nmessage\n"
    commit = make_object(Kind.COMMIT, signed)
    write_pack(packed.packs, [commit])
    export_history(packed, packed.git_dir, Outgoing("main", commit.oid, {}), tmp_path / "out.git", quiet, large=True)
    shown = run_git(tmp_path / "out.git", "cat-file", "commit", "main")
    assert b"gpgsig" not in shown
    assert b"\nencoding UTF-8\n" in shown


@pytest.mark.parametrize("kind", ["full", "file", "link"])
def test_a_target_that_is_taken_is_refused_and_left_alone(packed: Packed, source: Path, tmp_path: Path, kind: str) -> None:
    head = packed.add_commit(packed.take(source))
    target = tmp_path / kind
    if kind == "full":
        target.mkdir()
        (target / "mine").write_bytes(b"")
    elif kind == "file":
        target.write_bytes(b"mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    before = sorted(place.name for place in tmp_path.iterdir())
    with pytest.raises(Exists):
        export_history(packed, packed.git_dir, Outgoing("main", head, {}), target, quiet, large=False)
    assert sorted(place.name for place in tmp_path.iterdir()) == before
