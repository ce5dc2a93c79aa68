"""Large files: shared chunks, verified reads, pointers that cannot be forged, and a collection that harms nothing in use."""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.engines.git import steps
from store.engines.git.large import POINTER_SIZES, THRESHOLD, LargeStore, Pointer, belongs, encode_pointer, parse_pointer
from store.errors import Corrupt

POINTERS = st.builds(Pointer, st.binary(min_size=32, max_size=32), st.integers(0, 10**19 - 1))


@pytest.fixture
def large(tmp_path: Path) -> LargeStore:
    return LargeStore(tmp_path / "lo")


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def put(large: LargeStore, path: Path, data: bytes) -> Pointer:
    path.write_bytes(data)
    with opened(path) as descriptor, large.writing():
        return large.put(descriptor)


def chunks(tmp_path: Path) -> set[Path]:
    return set((tmp_path / "lo").glob("[0-9a-f][0-9a-f]/*"))


@given(POINTERS)
def test_a_pointer_reads_back_and_has_a_known_length(pointer: Pointer) -> None:
    assert parse_pointer(encode_pointer(pointer)) == pointer
    assert len(encode_pointer(pointer)) in POINTER_SIZES


@pytest.mark.parametrize(
    "change", [lambda text: text + b"\n", lambda text: text.upper(), lambda text: text.replace(b"size ", b"size 0"), lambda text: text[:-1]]
)
def test_only_the_canonical_form_is_a_pointer(change: object) -> None:
    assert callable(change)
    assert parse_pointer(change(encode_pointer(Pointer(b"\1" * 32, 12)))) is None


@pytest.mark.parametrize("size", [0, 1, 4096, 3 << 20, (9 << 20) + 17])
def test_content_comes_back_byte_for_byte(large: LargeStore, tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    pointer = put(large, tmp_path / "file", data)
    assert pointer == Pointer(hashlib.sha256(data).digest(), size)
    assert b"".join(large.stream(pointer)) == data
    with opened(tmp_path / "again") as target:
        large.reassemble(pointer, target)
    assert (tmp_path / "again").read_bytes() == data


def test_an_insertion_stores_only_the_chunks_around_it(large: LargeStore, tmp_path: Path) -> None:
    data = random.Random(1).randbytes(24 << 20)
    put(large, tmp_path / "file", data)
    before = chunks(tmp_path)
    changed = data[: 9 << 20] + b"inserted" + data[9 << 20 :]
    pointer = put(large, tmp_path / "file", changed)
    assert len(chunks(tmp_path) - before) <= 3
    assert b"".join(large.stream(pointer)) == changed


def test_runs_of_zeros_become_holes(large: LargeStore, tmp_path: Path) -> None:
    with opened(tmp_path / "sparse") as descriptor, large.writing():
        os.ftruncate(descriptor, 40 << 20)
        os.pwrite(descriptor, b"end", (40 << 20) - 3)
        pointer = large.put(descriptor)
    with opened(tmp_path / "again") as target:
        large.reassemble(pointer, target)
        found = os.fstat(target)
    assert (found.st_size, found.st_blocks * 512 < 16 << 20) == (40 << 20, True)


def test_a_descriptor_keeps_its_position(large: LargeStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    with opened(tmp_path / "file") as descriptor:
        os.lseek(descriptor, 17, os.SEEK_SET)
        large.put(descriptor)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 17


@pytest.mark.parametrize("which", ["chunk", "recipe"])
@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_damage_is_found_before_a_byte_of_it_is_given(large: LargeStore, tmp_path: Path, which: str, harm: str) -> None:
    pointer = put(large, tmp_path / "file", random.Random(2).randbytes(300_000))
    (victim,) = chunks(tmp_path) if which == "chunk" else set((tmp_path / "lo" / "recipes").glob("??/*"))
    victim.chmod(0o644)
    if harm == "missing":
        victim.unlink()
    else:
        body = victim.read_bytes()
        victim.write_bytes(body[:60] + bytes([body[60] ^ 1]) + body[61:])
    with pytest.raises(Corrupt):
        next(large.stream(pointer))


def test_a_pointer_of_another_size_is_corrupt(large: LargeStore, tmp_path: Path) -> None:
    pointer = put(large, tmp_path / "file", b"x" * 1000)
    with pytest.raises(Corrupt):
        next(large.stream(pointer._replace(size=999)))


def test_a_file_that_looks_like_a_pointer_is_stored_as_itself(large: LargeStore, tmp_path: Path) -> None:
    secret = put(large, tmp_path / "secret", b"s" * 1000)
    forged = encode_pointer(secret)
    (tmp_path / "forged").write_bytes(forged)
    with opened(tmp_path / "forged") as descriptor, large.writing():
        assert belongs(descriptor, len(forged))
        stands = large.put(descriptor)
    assert b"".join(large.stream(stands)) == forged
    assert encode_pointer(stands) != forged


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", False), (b"x" * 130, False), (b"x" * (THRESHOLD - 1), False), (b"x" * THRESHOLD, True)]
)
def test_size_decides_for_ordinary_files(tmp_path: Path, data: bytes, expected: bool) -> None:
    (tmp_path / "file").write_bytes(data)
    with opened(tmp_path / "file") as descriptor:
        assert belongs(descriptor, len(data)) is expected


def test_collecting_keeps_shared_chunks_and_removes_the_rest(large: LargeStore, tmp_path: Path) -> None:
    data = random.Random(4).randbytes(12 << 20)
    first = put(large, tmp_path / "first", data)
    second = put(large, tmp_path / "second", data[: 6 << 20] + random.Random(5).randbytes(6 << 20))
    (tmp_path / "lo" / "ab").mkdir(exist_ok=True)
    (tmp_path / "lo" / "ab" / "tmp_left").write_bytes(b"half")
    collected = large.collect(lambda: [second.sha256])
    assert collected is not None
    assert collected.files >= 3
    assert not large.holds(first)
    assert sum(map(len, large.stream(second))) == second.size
    assert large.collect(lambda: [second.sha256]) == (0, 0)


def test_nothing_is_collected_while_someone_writes(large: LargeStore, tmp_path: Path) -> None:
    put(large, tmp_path / "file", b"x" * 1000)
    with large.writing():
        assert large.collect(list) is None
    assert large.collect(list) == (2, pytest.approx(1000, abs=200))


def test_a_writer_waits_for_a_collection_and_then_stores_again(large: LargeStore, tmp_path: Path) -> None:
    put(large, tmp_path / "file", b"x" * 1000)
    reached, release = threading.Event(), threading.Event()

    def hold(name: str) -> None:
        if name == "large: recipes removed":
            reached.set()
            release.wait(20)

    steps.watch_steps(hold)
    try:
        collecting = threading.Thread(target=large.collect, args=(list,))
        collecting.start()
        assert reached.wait(20)
        pointers: list[Pointer] = []
        writing = threading.Thread(target=lambda: pointers.append(put(large, tmp_path / "file", b"x" * 1000)))
        writing.start()
        release.set()
        collecting.join(20)
        writing.join(20)
    finally:
        steps.watch_steps(None)
    assert b"".join(large.stream(pointers[0])) == b"x" * 1000


def test_everything_is_synced_before_the_recipe_appears(tmp_path: Path) -> None:
    seen: list[str] = []

    def sync(descriptor: int) -> None:
        seen.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")

    store = LargeStore(tmp_path / "lo", sync=sync)
    seen.clear()
    steps.watch_steps(seen.append)
    try:
        put(store, tmp_path / "file", b"x" * 1000)
    finally:
        steps.watch_steps(None)
    assert seen == ["file", "large: rename", "folder", "folder", "large: recipe", "file", "large: rename", "folder", "folder"]
