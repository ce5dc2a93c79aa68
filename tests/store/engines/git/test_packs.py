"""Packs written here are packs to any git, whatever their size, and nothing half-written is ever one."""

from __future__ import annotations

import hashlib
import os
import random
import struct
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.engines.git import steps
from store.engines.git.commands import run_git
from store.engines.git.objects import EMPTY_TREE, GitObject, Kind, encode_tree, make_object, object_id
from store.engines.git.packfolder import PackFolder
from store.engines.git.packs import INDEX_MAGIC, PackWriter, encode_index, entry_header, remove_abandoned, write_pack
from store.errors import Corrupt
from store.trees import FILE, TreeEntry


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repo.git"
    run_git(None, "init", "--bare", "--quiet", str(path))
    return path


def folder(repository: Path) -> Path:
    return repository / "objects" / "pack"


def content(repository: Path, oid: bytes) -> bytes:
    return run_git(repository, "cat-file", "blob", oid.hex())


def leftovers(repository: Path) -> list[str]:
    return [path.name for path in folder(repository).iterdir() if path.name.startswith("tmp_")]


def test_git_verifies_a_pack_and_reads_every_object(repository: Path) -> None:
    noise = random.Random(7)
    blobs = [make_object(Kind.BLOB, noise.randbytes(noise.choice([0, 1, 15, 16, 5000, 70_000]))) for _ in range(300)]
    blobs += [make_object(Kind.BLOB, b"a line\n" * 10_000), make_object(Kind.BLOB, b"x" * 3_000_000)]
    tree = make_object(Kind.TREE, encode_tree({b"%d" % at: TreeEntry(FILE, blob.oid) for at, blob in enumerate(blobs)}))
    name = write_pack(folder(repository), [*blobs, tree, *blobs])
    assert name is not None
    run_git(repository, "verify-pack", str(folder(repository) / f"{name}.idx"))
    run_git(repository, "index-pack", "--strict", "-o", str(repository / "again.idx"), str(folder(repository) / f"{name}.pack"))
    assert (repository / "again.idx").read_bytes() == (folder(repository) / f"{name}.idx").read_bytes()
    run_git(repository, "fsck", "--strict", "--full")
    assert all(content(repository, blob.oid) == blob.data for blob in blobs[::40])


def test_objects_stream_in_and_out_without_being_held(repository: Path) -> None:
    pieces = [bytes([at % 251]) * 1_000_003 for at in range(9)]
    with PackWriter(folder(repository)) as pack:
        oid = pack.add_stream(Kind.BLOB, sum(map(len, pieces)), iter(pieces))
        assert pack.add_stream(Kind.BLOB, sum(map(len, pieces)), iter(pieces)) == oid
    whole = b"".join(pieces)
    assert oid == object_id(Kind.BLOB, whole)
    assert content(repository, oid) == whole
    stream = PackFolder(repository).stream(oid)
    assert stream is not None
    read = list(stream)
    assert b"".join(read) == whole
    assert max(map(len, read)) <= 1 << 18


def test_threads_that_compress_change_nothing(repository: Path, tmp_path: Path) -> None:
    noise = random.Random(9)
    blobs = [make_object(Kind.BLOB, noise.randbytes(noise.choice([10, 5000, 700_000])) + b"x" * 5000) for _ in range(120)]
    names = []
    for workers, place in ((0, folder(repository)), (3, tmp_path)):
        with PackWriter(place, workers=workers) as pack:
            for at, blob in enumerate([*blobs, *blobs]):
                pack.add(blob)
                if at == 60:
                    pack.add_stream(Kind.BLOB, 3, [b"abc"])
        (name,) = (path.name for path in place.glob("pack-*.pack"))
        names.append(name)
    assert names[0] == names[1]
    run_git(repository, "fsck", "--full")


def test_a_stream_of_another_length_is_refused_and_the_pack_goes_on(repository: Path) -> None:
    with PackWriter(folder(repository)) as pack:
        first = pack.add_blob(b"first")
        for pieces in ([b"123"], [b"12345", b"6"]):
            with pytest.raises(Corrupt):
                pack.add_stream(Kind.BLOB, 5, pieces)
        second = pack.add_stream(Kind.BLOB, 5, [b"12", b"345"])
    assert (content(repository, first), content(repository, second)) == (b"first", b"12345")
    run_git(repository, "fsck", "--full")


def test_an_empty_pack_leaves_nothing(repository: Path) -> None:
    assert write_pack(folder(repository), []) is None
    assert list(folder(repository).iterdir()) == []


def test_an_aborted_pack_leaves_nothing(repository: Path) -> None:
    with pytest.raises(RuntimeError), PackWriter(folder(repository)) as pack:
        pack.add_blob(b"data")
        raise RuntimeError
    assert list(folder(repository).iterdir()) == []


def test_pack_and_index_are_synced_before_their_names_and_the_folder_after(repository: Path) -> None:
    seen: list[str] = []

    def sync(descriptor: int) -> None:
        seen.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")

    steps.watch_steps(seen.append)
    try:
        write_pack(folder(repository), [make_object(Kind.BLOB, b"data")], sync=sync)
    finally:
        steps.watch_steps(None)
    assert seen == ["pack: sync", "file", "pack: sync", "file", "pack: name", "pack: name index", "pack: sync folder", "folder"]


class Death(BaseException):
    """The end of a process, as far as one process can play it."""


@pytest.mark.parametrize("point", range(6))
def test_a_death_at_any_step_leaves_a_valid_repository_and_removable_rests(repository: Path, point: int) -> None:
    taken: list[str] = []

    def die(name: str) -> None:
        taken.append(name)
        if len(taken) == point + 1:
            raise Death

    write_pack(folder(repository), [make_object(Kind.BLOB, b"kept")])
    before = set(folder(repository).iterdir())
    writer = PackWriter(folder(repository))
    writer.add_blob(b"lost")
    steps.watch_steps(die)
    try:
        with suppress(Death):
            writer.finish()
    finally:
        steps.watch_steps(None)
    assert remove_abandoned(folder(repository)) == 0 or point >= 5, "a living writer's files stay"
    writer._release()
    remove_abandoned(folder(repository))
    run_git(repository, "fsck", "--full")
    visible = run_git(repository, "cat-file", "--batch-all-objects", "--batch-check").count(b"\n")
    after = set(folder(repository).iterdir())
    assert (visible, len(after - before)) == ((1, 0) if point < 4 else (2, 2))


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=30))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_object_is_found_where_it_was_put(tmp_path: Path, datas: list[bytes]) -> None:
    git_dir = tmp_path / hashlib.sha256(repr(datas).encode()).hexdigest()
    (git_dir / "objects" / "pack").mkdir(parents=True, exist_ok=True)
    packs = PackFolder(git_dir)
    absent = object_id(Kind.BLOB, b"absent" * 100)
    assert packs.find(absent) is None
    write_pack(folder(git_dir), [make_object(Kind.BLOB, data) for data in datas])
    for data in datas:
        stream = packs.stream(object_id(Kind.BLOB, data))
        entry = packs.find(object_id(Kind.BLOB, data))
        assert stream is not None
        assert entry is not None
        assert (b"".join(stream), entry.size, entry.kind) == (data, len(data), Kind.BLOB)
    assert packs.find(absent) is None


def test_a_pack_that_came_in_the_same_instant_as_a_look_is_seen(repository: Path) -> None:
    packs = PackFolder(repository)
    for at in range(30):
        write_pack(folder(repository), [make_object(Kind.BLOB, b"%d" % at)])
        os.utime(folder(repository), (1, 1))
        assert packs.find(object_id(Kind.BLOB, b"%d" % at)) is not None


def test_identities_are_found_by_their_first_digits(repository: Path) -> None:
    blobs = [make_object(Kind.BLOB, b"%d" % at) for at in range(2000)]
    write_pack(folder(repository), blobs[:1000])
    write_pack(folder(repository), blobs[500:])
    packs = PackFolder(repository)
    for digits in ("", "0", "7", "ff", "abc", blobs[3].oid.hex()[:9], blobs[3].oid.hex(), "f" * 40):
        assert packs.find_prefix(digits) == {blob.oid for blob in blobs if blob.oid.hex().startswith(digits)}


def test_deltified_objects_stream_through_git_and_removed_packs_are_forgotten(repository: Path) -> None:
    base = random.Random(3).randbytes(20_000)
    first, second = make_object(Kind.BLOB, base), make_object(Kind.BLOB, base + b"and a little more")
    write_pack(folder(repository), [first])
    write_pack(folder(repository), [second])
    packs = PackFolder(repository)
    before = packs.stream(first.oid)
    assert before is not None
    tree = make_object(Kind.TREE, encode_tree({b"a": TreeEntry(FILE, first.oid), b"b": TreeEntry(FILE, second.oid)}))
    write_pack(folder(repository), [tree])
    run_git(repository, "repack", "-a", "-d", "-f", "--keep-unreachable", "--quiet")
    assert b"".join(before) == first.data
    packs.refresh()
    entries = [packs.find(item.oid) for item in (first, second)]
    assert sorted(entry.kind is None for entry in entries if entry is not None) == [False, True]
    for item in (first, second):
        stream = packs.stream(item.oid)
        assert stream is not None
        assert b"".join(stream) == item.data


def test_changed_bytes_of_a_pack_are_corrupt(repository: Path) -> None:
    data = random.Random(5).randbytes(2_000_000)
    name = write_pack(folder(repository), [make_object(Kind.BLOB, data)])
    path = folder(repository) / f"{name}.pack"
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"changed")
    stream = PackFolder(repository).stream(object_id(Kind.BLOB, data))
    assert stream is not None
    with pytest.raises(Corrupt):
        _drain(stream)


def _drain(pieces: Iterator[bytes]) -> int:
    return sum(len(piece) for piece in pieces)


def test_a_pack_that_was_cut_off_is_corrupt(repository: Path) -> None:
    data = random.Random(6).randbytes(2_000_000)
    name = write_pack(folder(repository), [make_object(Kind.BLOB, data)])
    path = folder(repository) / f"{name}.pack"
    path.chmod(0o644)
    os.truncate(path, 1_000_000)
    stream = PackFolder(repository).stream(object_id(Kind.BLOB, data))
    assert stream is not None
    with pytest.raises(Corrupt):
        _drain(stream)


def test_offsets_beyond_four_gigabytes_are_indexed(tmp_path: Path) -> None:
    git_dir = tmp_path / "far.git"
    folder(git_dir).mkdir(parents=True)
    data = b"far away"
    oid = object_id(Kind.BLOB, data)
    body = entry_header(Kind.BLOB, len(data)) + zlib.compress(data)
    place = (1 << 32) + 4096
    pack = folder(git_dir) / "pack-far.pack"
    with pack.open("wb") as file:
        file.seek(place)
        file.write(body)
    (folder(git_dir) / "pack-far.idx").write_bytes(encode_index([(oid, 0, place)], b"\0" * 20))
    stream = PackFolder(git_dir).stream(oid)
    assert stream is not None
    assert b"".join(stream) == data


def test_git_reads_an_index_with_long_offsets(repository: Path, tmp_path: Path) -> None:
    entries = sorted((object_id(Kind.BLOB, b"%d" % at), at, offset) for at, offset in enumerate([12, 0x7FFFFFFF, 0x80000000, 1 << 40]))
    index = encode_index(entries, b"\0" * 20)
    shown = subprocess.run(["git", "show-index"], input=index, capture_output=True, check=True).stdout.decode().splitlines()
    assert {tuple(line.split()[:2]) for line in shown} == {(str(offset), oid.hex()) for oid, _, offset in entries}
    assert index.startswith(INDEX_MAGIC)


@pytest.mark.parametrize("content", [struct.pack(">I", 9) * 300, b""], ids=["version", "empty"])
def test_an_index_that_is_none_is_refused(repository: Path, content: bytes) -> None:
    name = write_pack(folder(repository), [GitObject(EMPTY_TREE, Kind.TREE, b"")])
    path = folder(repository) / f"{name}.idx"
    path.chmod(0o644)
    path.write_bytes(content)
    with pytest.raises(Corrupt):
        PackFolder(repository).find(EMPTY_TREE)
