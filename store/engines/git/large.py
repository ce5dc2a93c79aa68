"""Large files: content-defined chunks under their hashes, and the pointer that stands for a whole file in a tree.

1. A file of `THRESHOLD` bytes or more is cut where its content says so (FastCDC, a mebibyte on average) and each chunk kept once, as
   ``lo/<ab>/<sha256>``; versions of a file share what did not change. The recipe ``lo/recipes/<ab>/<sha256>`` lists a file's chunks in
   order, as text that ordinary tools can follow.
2. In the tree stands a Git LFS pointer. A file is large because the database knows its pointer, never because its bytes look like one;
   and a file whose own bytes are a pointer is stored as a large one (`belongs`), so that it can neither be mistaken for
   another file nor fetch content that its writer never had by naming a hash.
3. When `put` returns, chunks, recipe and their names are on stable storage: chunks first, then the recipe, each by rename.
4. Chunks and recipes never change. Each is verified against its hash whenever it is read; a mismatch raises `Corrupt`.
5. Whoever stores holds `writing` until the transaction that makes the content reachable has ended; `collect` runs only when nobody does.
6. Files pass through in chunks of at most four mebibytes. Long runs of zeros become holes again. Every method is safe from several threads.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyfastcdc import FastCDC

from store.engines.git.packs import TEMPORARY, Sync, sync_folder
from store.engines.git.steps import step
from store.errors import Corrupt

THRESHOLD = 8 << 20
"""Files of this many bytes or more are kept in chunks."""

POINTER_SIZES = range(126, 145)
"""The lengths that a pointer can have; anything else need not be looked up."""

_AVERAGE = 1 << 20
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (0|[1-9][0-9]{0,18})\n")


class Pointer(NamedTuple):
    """A large file: the SHA-256 of its content (32 raw bytes) and its size in bytes."""

    sha256: bytes
    size: int


class Collected(NamedTuple):
    """What `collect` removed."""

    files: int
    bytes: int


class _Chunk(NamedTuple):
    sha256: str
    size: int


def encode_pointer(pointer: Pointer) -> bytes:
    """Return the Git LFS pointer file of a large file."""
    return b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n" % (pointer.sha256.hex().encode(), pointer.size)


def parse_pointer(data: bytes) -> Pointer | None:
    """Return the pointer that `data` spells in the one form written here, or None."""
    match = _POINTER.fullmatch(data)
    return Pointer(bytes.fromhex(match[1].decode()), int(match[2])) if match else None


def belongs(descriptor: int, size: int) -> bool:
    """Tell whether a file of `size` bytes is kept as a large one: for its size, or because its bytes are a pointer themselves."""
    if size >= THRESHOLD:
        return True
    return size in POINTER_SIZES and parse_pointer(os.pread(descriptor, size + 1, 0)) is not None


class LargeStore:
    """The chunks and recipes of one store."""

    def __init__(self, folder: Path, *, sync: Sync = os.fsync) -> None:
        """Serve ``folder``, making it when it is missing."""
        self._folder = folder
        self._recipes = folder / "recipes"
        self._lock = folder / "lock"
        self._sync = sync
        if not self._recipes.exists():
            self._recipes.mkdir(parents=True, exist_ok=True)
            self._sync_folders({folder, folder.parent})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep `collect` away while new content is not yet reachable. Waits while a collection runs; several may write at once."""
        with self._locked(fcntl.LOCK_SH):
            yield

    def put(self, descriptor: int) -> Pointer:
        """Store the content of an open file, durably, and return its pointer. Raises `OSError` as the disk does."""
        digest = hashlib.sha256()
        chunks: list[_Chunk] = []
        for chunk in FastCDC(avg_size=_AVERAGE).cut_stream(_Reader(descriptor)):
            digest.update(chunk.data)
            chunks.append(self._put_chunk(chunk.data))
        self._sync_folders({self._chunk_path(chunk.sha256).parent for chunk in chunks} | {self._folder})
        pointer = Pointer(digest.digest(), sum(chunk.size for chunk in chunks))
        self._put_recipe(pointer, chunks)
        return pointer

    def stream(self, pointer: Pointer) -> Iterator[bytes]:
        """Return a large file's content in chunks, each verified before it is given. The iterator raises `Corrupt`."""
        for chunk in self._read_recipe(pointer.sha256, pointer.size):
            yield self._read_chunk(chunk)

    def reassemble(self, pointer: Pointer, target: int) -> None:
        """Write a large file's content into an empty file, leaving chunks of zeros as holes. Raises `Corrupt`."""
        write_pieces(target, self.stream(pointer))

    def holds(self, pointer: Pointer) -> bool:
        """Tell whether the content of a pointer is here."""
        return self._recipe_path(pointer.sha256.hex()).exists()

    def collect(self, find_live: Callable[[], Iterable[bytes]]) -> Collected | None:
        """Remove the recipes of all but the live files (SHA-256 of their content) and every chunk that no recipe names.

        Returns None, having done nothing, while someone is `writing`; `find_live` is asked when nobody is, and nobody begins meanwhile.
        A death in the middle leaves only more to remove.
        """
        try:
            with self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
                return self._collect({sha256.hex() for sha256 in find_live()})
        except BlockingIOError:
            return None

    def _collect(self, live: set[str]) -> Collected:
        dropped = [path for path in self._recipes.glob("??/*") if path.name not in live]
        gone = _remove(dropped)
        self._sync_folders({path.parent for path in dropped})
        step("large: recipes removed")
        needed = {chunk.sha256 for name in live if self._recipe_path(name).exists() for chunk in self._read_recipe(bytes.fromhex(name))}
        chunks = (path for path in self._folder.glob("[0-9a-f][0-9a-f]/*") if path.name not in needed)
        more = _remove(chunks)
        return Collected(gone.files + more.files, gone.bytes + more.bytes)

    def _put_chunk(self, data: memoryview) -> _Chunk:
        chunk = _Chunk(hashlib.sha256(data).hexdigest(), len(data))
        path = self._chunk_path(chunk.sha256)
        if not path.exists():
            self._write(path, (data,))
        return chunk

    def _put_recipe(self, pointer: Pointer, chunks: list[_Chunk]) -> None:
        path = self._recipe_path(pointer.sha256.hex())
        if not path.exists():
            body = b"".join(b"%s %d\n" % (chunk.sha256.encode(), chunk.size) for chunk in chunks)
            step("large: recipe")
            self._write(path, (body, hashlib.sha256(body).hexdigest().encode(), b"\n"))
        self._sync_folders({path.parent, self._recipes})

    def _read_recipe(self, sha256: bytes, size: int | None = None) -> list[_Chunk]:
        body, _, seal = _read(self._recipe_path(sha256.hex()))[:-1].rpartition(b"\n")
        lines = [line.split(b" ") for line in body.split(b"\n")] if body else []
        body += b"\n" if body else b""
        if hashlib.sha256(body).hexdigest().encode() != seal:
            raise Corrupt(sha256.hex(), "its list of chunks was changed")
        chunks = [_Chunk(name.decode(), int(length)) for name, length in lines]
        if size is not None and sum(chunk.size for chunk in chunks) != size:
            raise Corrupt(sha256.hex(), "its list of chunks is of another size")
        return chunks

    def _read_chunk(self, chunk: _Chunk) -> bytes:
        data = _read(self._chunk_path(chunk.sha256))
        if hashlib.sha256(data).hexdigest() != chunk.sha256:
            raise Corrupt(chunk.sha256, "a chunk does not match its hash")
        return data

    def _write(self, path: Path, pieces: Iterable[bytes | memoryview]) -> None:
        path.parent.mkdir(exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
        temporary = Path(name)
        try:
            with open(descriptor, "wb") as file:
                file.writelines(pieces)
                file.flush()
                os.fchmod(descriptor, 0o444)
                self._sync(descriptor)
            step("large: rename")
            temporary.rename(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _sync_folders(self, folders: Iterable[Path]) -> None:
        for folder in sorted(folders):
            sync_folder(folder, self._sync)

    def _chunk_path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _recipe_path(self, name: str) -> Path:
        return self._recipes / name[:2] / name

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)


def write_pieces(descriptor: int, pieces: Iterable[bytes]) -> int:
    """Write pieces one after the other into an empty file, leaving those of zeros as holes, and return the length. Raises `OSError`."""
    offset = 0
    for piece in pieces:
        if piece.count(0) != len(piece):
            _write_whole(descriptor, piece, offset)
        offset += len(piece)
    os.ftruncate(descriptor, offset)
    return offset


def _write_whole(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, offset)
        view, offset = view[done:], offset + done


class _Reader:
    """An open file as the chunker reads it, without moving the descriptor's own position."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._offset = 0

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer as far as the file goes and return how far."""
        got = os.preadv(self._descriptor, [buffer], self._offset)
        self._offset += got
        return got


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise Corrupt(path.name, "a part of a large file is missing") from None


def _remove(paths: Iterable[Path]) -> Collected:
    files = size = 0
    for path in paths:
        size += path.stat().st_size
        path.unlink()
        files += 1
    return Collected(files, size)
