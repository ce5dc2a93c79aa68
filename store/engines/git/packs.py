"""Writing packs: many objects in one immutable file with its index, readable by any git.

1. A pack exists from the rename of its index on, whole and on stable storage: pack and index are synced, renamed in that order, then
   the directory is synced. A death at any step leaves ``tmp_`` files, or a pack without an index, which git ignores; recovery removes both.
2. Objects are written as they come, never deltified, and never held: content may come in pieces, so a file of any size passes through.
3. Level 1 compression, and none for content of a mebibyte or more or that does not shrink: the first write has to be fast, and a
   repack compresses later.
4. An object is written once a pack, however often it is added.
5. A writer belongs to one thread, though threads of its own may compress for it, within bounded memory.
6. A writer holds a lock on its files while it lives: that is how `remove_abandoned` tells what a death left behind from what another
   process is writing now.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import itertools
import os
import struct
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from store.engines.git.objects import GitObject, Kind, object_header, object_id
from store.engines.git.steps import step
from store.errors import Corrupt

Sync = Callable[[int], None]
"""Brings what a descriptor wrote to stable storage, as `os.fsync`."""

STORED_FROM = 1 << 20
"""Content of this many bytes or more is not compressed on its first write."""

FAR = 0x80000000
"""Offsets from here on take eight bytes in an index; the bit marks them."""

INDEX_MAGIC = b"\377tOc\0\0\0\2"
TEMPORARY = "tmp_"

_SAMPLE = 4096
_PIECE = 1 << 20
_WAITING_BYTES = 16 << 20


class _Written(NamedTuple):
    oid: bytes
    crc: int
    offset: int


class _Waiting(NamedTuple):
    oid: bytes
    size: int
    packed: Future[bytes]


class PackWriter:
    """One pack being written. As a context manager it finishes at the end of the block and aborts on an exception."""

    def __init__(self, folder: Path, *, sync: Sync = os.fsync, workers: int = 0) -> None:
        """Begin a pack in `folder` (a repository's ``objects/pack``), which exists; `workers` threads compress, or (0) the caller does."""
        self._folder = folder
        self._sync = sync
        self._path, self._file = _temporary(folder)
        self._pool = ThreadPoolExecutor(workers) if workers else None
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._index: tuple[Path, io.BufferedRandom] | None = None
        self._written: dict[bytes, _Written] = {}
        self._offset = self._file.write(_pack_header(0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.finish()
        else:
            self.abort()

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._written

    def __len__(self) -> int:
        return len(self._written)

    @property
    def size(self) -> int:
        """Return the bytes written so far."""
        return self._offset

    def add(self, item: GitObject) -> None:
        """Write one object, whose identity is right."""
        if item.oid in self._written:
            return
        if self._pool is None:
            self._append(item.oid, _encode_entry(item))
            return
        self._written[item.oid] = _Written(item.oid, 0, 0)
        self._waiting.append(_Waiting(item.oid, len(item.data), self._pool.submit(_encode_entry, item)))
        self._waiting_bytes += len(item.data)
        self._drain(_WAITING_BYTES)

    def add_blob(self, data: bytes) -> bytes:
        """Write a file's content and return its identity."""
        oid = object_id(Kind.BLOB, data)
        self.add(GitObject(oid, Kind.BLOB, data))
        return oid

    def add_stream(self, kind: Kind, size: int, pieces: Iterable[bytes]) -> bytes:
        """Write an object of exactly `size` bytes as its pieces come, and return its identity.

        Raises `Corrupt` when the pieces are more or fewer bytes; the pack is then as it was before.
        """
        self._drain(-1)
        start = self._offset
        source = _Measured(object_header(kind, size), pieces)
        packed = _squeeze(source, 0 if size >= STORED_FROM else 1)
        crc = self._write(itertools.chain((entry_header(kind, size),), packed))
        oid = source.digest.digest()
        if source.length != size or oid in self._written:
            self._rewind(start)
        if source.length != size:
            raise Corrupt("object", f"{source.length} bytes came where {size} were announced")
        self._written.setdefault(oid, _Written(oid, crc, start))
        return oid

    def finish(self) -> str | None:
        """Make the pack part of the repository, durably, and return its name; None, and no file, when nothing was added."""
        if not self._written:
            self.abort()
            return None
        self._drain(-1)
        digest = self._seal()
        index = self._write_index(digest)
        final = self._folder / f"pack-{digest.hex()}.pack"
        step("pack: name")
        self._path.rename(final)
        step("pack: name index")
        index.rename(final.with_suffix(".idx"))
        step("pack: sync folder")
        sync_folder(self._folder, self._sync)
        self._release()
        return final.stem

    def abort(self) -> None:
        """Remove what was written and has no name yet. Repeats do nothing."""
        self._path.unlink(missing_ok=True)
        if self._index is not None:
            self._index[0].unlink(missing_ok=True)
        self._release()

    def _release(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._file.close()
        if self._index is not None:
            self._index[1].close()

    def _drain(self, most: int) -> None:
        """Write what was compressed, in order, until at most `most` bytes wait (-1: nothing does)."""
        while self._waiting and self._waiting_bytes > most:
            oid, size, packed = self._waiting.popleft()
            self._append(oid, packed.result())
            self._waiting_bytes -= size

    def _append(self, oid: bytes, packed: bytes) -> None:
        start = self._offset
        self._written[oid] = _Written(oid, self._write((packed,)), start)

    def _write(self, packed: Iterable[bytes]) -> int:
        crc = 0
        for piece in packed:
            crc = zlib.crc32(piece, crc)
            self._offset += self._file.write(piece)
        return crc

    def _rewind(self, offset: int) -> None:
        self._file.seek(offset)
        self._file.truncate()
        self._offset = offset

    def _seal(self) -> bytes:
        self._file.seek(0)
        self._file.write(_pack_header(len(self._written)))
        self._file.seek(0)
        digest = hashlib.file_digest(self._file, _sha1).digest()
        self._file.write(digest)
        self._sync_file(self._file)
        return digest

    def _write_index(self, pack_digest: bytes) -> Path:
        self._index = path, file = _temporary(self._folder)
        file.write(encode_index(sorted(self._written.values()), pack_digest))
        self._sync_file(file)
        return path

    def _sync_file(self, file: io.BufferedRandom) -> None:
        file.flush()
        step("pack: sync")
        self._sync(file.fileno())


def write_pack(folder: Path, objects: Iterable[GitObject], *, sync: Sync = os.fsync) -> str | None:
    """Write objects as one durable pack and return its name; None when there are none."""
    writer = PackWriter(folder, sync=sync)
    try:
        for item in objects:
            writer.add(item)
        return writer.finish()
    finally:
        writer.abort()


def remove_abandoned(folder: Path) -> int:
    """Remove what writers that died left in a folder of packs, and return its bytes; files of living writers stay.

    The folder is served by no git command that writes meanwhile.
    """
    strays = [path for pattern in (f"{TEMPORARY}*", ".tmp-*") for path in folder.glob(pattern)]
    strays += [path for path in folder.glob("pack-*.pack") if not path.with_suffix(".idx").exists()]
    return sum(_remove_unlocked(path) for path in strays)


def _remove_unlocked(path: Path) -> int:
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            return os.fstat(file.fileno()).st_size
    except (BlockingIOError, FileNotFoundError):
        return 0


def sync_folder(folder: Path, sync: Sync = os.fsync) -> None:
    """Bring the names of a directory to stable storage."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def entry_header(kind: int, size: int) -> bytes:
    """Return the bytes in front of one entry of a pack: kind and size, seven bits a byte."""
    head = bytearray()
    byte = (kind << 4) | (size & 15)
    size >>= 4
    while size:
        head.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    head.append(byte)
    return bytes(head)


def encode_index(entries: Iterable[tuple[bytes, int, int]], pack_digest: bytes) -> bytes:
    """Return the index (version 2) of entries (identity, CRC, offset), which are ordered by identity."""
    oids, crcs, offsets = (list(column) for column in zip(*entries, strict=True))
    far = [offset for offset in offsets if offset >= FAR]
    places = itertools.count(FAR)
    near = [next(places) if offset >= FAR else offset for offset in offsets]
    fan = [0] * 256
    for oid in oids:
        fan[oid[0]] += 1
    parts = [
        INDEX_MAGIC,
        struct.pack(">256I", *itertools.accumulate(fan)),
        b"".join(oids),
        struct.pack(f">{len(crcs)}I", *crcs),
        struct.pack(f">{len(near)}I", *near),
        struct.pack(f">{len(far)}Q", *far),
        pack_digest,
    ]
    body = b"".join(parts)
    return body + _sha1(body).digest()


class _Measured:
    """Pieces passing through, hashed and counted."""

    def __init__(self, header: bytes, pieces: Iterable[bytes]) -> None:
        self.digest = _sha1(header)
        self.length = 0
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.digest.update(piece)
            self.length += len(piece)
            yield piece


def _encode_entry(item: GitObject) -> bytes:
    return entry_header(item.kind, len(item.data)) + zlib.compress(item.data, _level(item.data))


def _squeeze(pieces: Iterable[bytes], level: int) -> Iterator[bytes]:
    squeezer = zlib.compressobj(level)
    for piece in pieces:
        yield squeezer.compress(piece)
    yield squeezer.flush()


def _level(data: bytes) -> int:
    if len(data) >= STORED_FROM:
        return 0
    if len(data) <= 2 * _SAMPLE:
        return 1
    sample = data[len(data) // 2 :][:_SAMPLE]
    return 1 if len(zlib.compress(sample, 1)) < _SAMPLE * 15 // 16 else 0


def _sha1(data: bytes = b"") -> hashlib._Hash:
    return hashlib.sha1(data, usedforsecurity=False)


def _pack_header(count: int) -> bytes:
    return b"PACK" + struct.pack(">II", 2, count)


def _temporary(folder: Path) -> tuple[Path, io.BufferedRandom]:
    """Make a locked file; one that `remove_abandoned` took before it was locked is given up."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            os.fchmod(descriptor, 0o444)
            return Path(name), io.BufferedRandom(io.FileIO(descriptor, "r+"), _PIECE)
        os.close(descriptor)
