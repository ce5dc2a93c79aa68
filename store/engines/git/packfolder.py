"""Reading packs in pieces: where an object lies, how big it is, and its content as a stream.

1. Small objects are read by libgit2; this serves what libgit2 would hold in memory whole (content above a mebibyte).
2. Objects in one piece are inflated here; deltified ones (a repack made them so) come from a git child.
3. Content is verified against its identity while it is streamed; a mismatch raises `Corrupt` at the end of the stream.
4. Packs come and go: a miss reads the folder again, and a pack that was removed stays readable until its last stream ends.
5. Every method may be called from several threads.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import threading
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from store.engines.git.commands import git_reader
from store.engines.git.objects import ID_LENGTH, Kind, object_header
from store.engines.git.packs import FAR, INDEX_MAGIC
from store.errors import Corrupt

_PIECE = 1 << 18
_TABLES = 8 + 1024
_WHOLE_KINDS = {int(kind): kind for kind in Kind}


class PackEntry(NamedTuple):
    """Where an object lies. `kind` and `size` are None for a deltified one; `start` is where its compressed bytes begin."""

    pack: mmap.mmap
    start: int
    kind: Kind | None
    size: int | None


class PackFolder:
    """The packs of a repository, for streaming."""

    def __init__(self, git_dir: Path) -> None:
        """Serve the packs of a bare repository."""
        self._git_dir = git_dir
        self._folder = git_dir / "objects" / "pack"
        self._lock = threading.Lock()
        self._packs: dict[str, _Pack] = {}

    def find(self, oid: bytes) -> PackEntry | None:
        """Return where an object lies, or None when no pack holds it."""
        return self._search(oid) or (self._search(oid) if self.refresh() else None)

    def stream(self, oid: bytes) -> Iterator[bytes] | None:
        """Return the content of an object in pieces, or None when no pack holds it. The iterator raises `Corrupt`."""
        entry = self.find(oid)
        if entry is None:
            return None
        if entry.kind is None or entry.size is None:
            return self._stream_deltified(oid)
        return _verified(oid, entry.kind, entry.size, _inflate(entry.pack, entry.start))

    def find_prefix(self, digits: str) -> set[bytes]:
        """Return the objects in packs whose identity starts with these hexadecimal digits."""
        self.refresh()
        return {oid for pack in tuple(self._packs.values()) for oid in pack.matching(digits)}

    def close(self) -> None:
        """Forget the packs; streams that are running end as usual."""
        with self._lock:
            self._packs = {}

    def refresh(self) -> bool:
        """Read the folder again and tell whether it had changed; its time would not tell, as two changes can share one."""
        with self._lock:
            names = {path.stem for path in self._folder.glob("pack-*.idx")}
            if names == self._packs.keys():
                return False
            kept = {name: pack for name, pack in self._packs.items() if name in names}
            opened = {name: pack for name in names - kept.keys() if (pack := _open_pack(self._folder, name)) is not None}
            self._packs = kept | opened
            return True

    def _search(self, oid: bytes) -> PackEntry | None:
        for pack in tuple(self._packs.values()):
            offset = pack.offset(oid)
            if offset is not None:
                return _entry(pack.content, offset)
        return None

    def _stream_deltified(self, oid: bytes) -> Iterator[bytes]:
        with git_reader(self._git_dir, "cat-file", "blob", oid.hex()) as output:
            while piece := output.read(_PIECE):
                yield piece


class _Pack:
    """One pack with its index, both mapped; the mapping outlives the file's name."""

    def __init__(self, index: mmap.mmap, content: mmap.mmap) -> None:
        self.content = content
        self._index = index
        self._fan = struct.unpack_from(">256I", index, 8)

    def offset(self, oid: bytes) -> int | None:
        """Return where the object's entry begins, or None."""
        place = self._place(oid)
        if place == self._fan[oid[0]] or self._oid(place) != oid:
            return None
        return self._offset(place)

    def matching(self, digits: str) -> Iterator[bytes]:
        """Yield the identities that start with hexadecimal digits."""
        first = bytes.fromhex(digits.ljust(2 * ID_LENGTH, "0"))
        for place in range(self._place(first), self._fan[255]):
            oid = self._oid(place)
            if not oid.hex().startswith(digits):
                return
            yield oid

    def _place(self, oid: bytes) -> int:
        low = self._fan[oid[0] - 1] if oid[0] else 0
        return bisect_left(range(self._fan[oid[0]]), oid, lo=low, key=self._oid)

    def _oid(self, place: int) -> bytes:
        start = _TABLES + place * ID_LENGTH
        return self._index[start : start + ID_LENGTH]

    def _offset(self, place: int) -> int:
        count = self._fan[255]
        near = _TABLES + count * (ID_LENGTH + 4)
        (offset,) = struct.unpack_from(">I", self._index, near + 4 * place)
        if offset < FAR:
            return int(offset)
        (far,) = struct.unpack_from(">Q", self._index, near + 4 * count + 8 * (offset - FAR))
        return int(far)


def _open_pack(folder: Path, name: str) -> _Pack | None:
    """Return a pack, or None when a repack removed it meanwhile (what it held is in another by then)."""
    try:
        index, content = _map(folder / f"{name}.idx"), _map(folder / f"{name}.pack")
    except FileNotFoundError:
        return None
    if index[:8] != INDEX_MAGIC:
        raise Corrupt(name, "its index is not of version 2")
    return _Pack(index, content)


def _map(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise Corrupt(path.name, "it is empty")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _entry(pack: mmap.mmap, offset: int) -> PackEntry:
    byte = pack[offset]
    number, size, shift = (byte >> 4) & 7, byte & 15, 4
    while byte & 0x80:
        offset += 1
        byte = pack[offset]
        size |= (byte & 0x7F) << shift
        shift += 7
    kind = _WHOLE_KINDS.get(number)
    return PackEntry(pack, offset + 1, kind, None if kind is None else size)


def _inflate(pack: mmap.mmap, position: int) -> Iterator[bytes]:
    """Yield what the compressed bytes at `position` expand to, never more than a piece at once however well they were squeezed."""
    inflater = zlib.decompressobj()
    given = b""
    while not inflater.eof:
        if not given:
            given = pack[position : position + _PIECE]
            position += len(given)
        piece = _inflated(inflater, given)
        given = inflater.unconsumed_tail
        yield piece


def _inflated(inflater: zlib._Decompress, given: bytes) -> bytes:
    if not given:
        raise Corrupt("pack", "it ends within an object")
    try:
        return inflater.decompress(given, _PIECE)
    except zlib.error as error:
        raise Corrupt("pack", str(error)) from error


def _verified(oid: bytes, kind: Kind, size: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    digest = hashlib.sha1(object_header(kind, size), usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.digest() != oid:
        raise Corrupt(oid.hex(), "its content does not match its identity")
