"""Who failed to authenticate, as all processes of one appliance count it: a file of fixed size, mapped into each.

1. It can be deleted while nothing runs: it holds nothing but counts. It never grows: `SLOTS` entries of 40 bytes, found by a keyed hash,
   so that nobody outside can choose where an entry goes, and nobody with the file learns a name.
2. Where a bucket is full, what is forgotten makes room, then the entry with the fewest failures: a flood of single failures over invented
   names does not wash away those who are waiting.
3. What was right is kept beside it, under a hash of the credential: a wait never keeps out what was let in before (`establish`).
4. Every change happens under a lock that all processes and threads share. Looking takes none: an entry read in the middle of a change
   costs or spares one failure.
5. Any thread may call.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nasd.identities.lockout import Strikes, strike

SLOTS = 1 << 14
_MAGIC = b"nas-attempts-1\0\0"
_KEY_BYTES = 32
_HEADER = len(_MAGIC) + _KEY_BYTES
_ENTRY = struct.Struct("<16sQdd")
_BUCKET = 8
_SIZE = _HEADER + SLOTS * _ENTRY.size
_GOOD = (1 << 63) - 1
"""The count of an entry that is no failure but a credential that was right."""
_GOOD_SECONDS = 12 * 3600.0
_EMPTY = bytes(16)


class Attempts:
    """The shared counts."""

    def __init__(self, path: Path) -> None:
        """Open the file at `path`, making it when it is not there or not whole. Raises `OSError`."""
        self._lock = threading.Lock()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with self._locked():
                self._make_whole()
                self._map = mmap.mmap(self._descriptor, _SIZE)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._key = self._map[len(_MAGIC) : _HEADER]

    def close(self) -> None:
        """Let go of the file; nobody calls any more. Repeats do nothing: the descriptor may be somebody else's by then."""
        if not self._map.closed:
            self._map.close()
            os.close(self._descriptor)

    def find(self, *parts: str) -> Strikes:
        """Return what is counted under a name made of parts."""
        key = self._digest("failed", *parts)
        place = self._place(key)
        return Strikes() if place is None else self._read(place)[1]

    def strike(self, *parts: str, now: float, free: int) -> tuple[Strikes, Strikes]:
        """Count one more failure, and return what was counted before and after it."""
        key = self._digest("failed", *parts)
        with self._locked():
            place = self._place(key)
            before = Strikes() if place is None else self._read(place)[1]
            after = strike(before, now, free)
            self._write(self._room(key, now) if place is None else place, key, after)
        return before, after

    def forgive(self, *parts: str) -> None:
        """Forget what is counted under a name."""
        key = self._digest("failed", *parts)
        if self._place(key) is None:
            return
        with self._locked():
            place = self._place(key)
            if place is not None:
                self._write(place, _EMPTY, Strikes())

    def establish(self, credential: bytes, now: float) -> None:
        """Remember for half a day that a credential, by its digest, was right."""
        key = self._digest("right", credential.hex())
        place = self._place(key)
        if place is not None and now - self._read(place)[1].last < _GOOD_SECONDS / 2:
            return
        with self._locked():
            place = self._place(key)
            self._write(self._room(key, now) if place is None else place, key, Strikes(_GOOD, now, 0.0))

    def is_established(self, credential: bytes, now: float) -> bool:
        """Tell whether a credential was right not long ago. Whether it still is, whoever asks must find out."""
        place = self._place(self._digest("right", credential.hex()))
        return place is not None and now - self._read(place)[1].last < _GOOD_SECONDS

    # -- the file -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _make_whole(self) -> None:
        if os.fstat(self._descriptor).st_size == _SIZE and os.pread(self._descriptor, len(_MAGIC), 0) == _MAGIC:
            return
        os.ftruncate(self._descriptor, 0)
        os.ftruncate(self._descriptor, _SIZE)
        os.pwrite(self._descriptor, _MAGIC + os.urandom(_KEY_BYTES), 0)

    def _digest(self, kind: str, *parts: str) -> bytes:
        text = "\0".join((kind, *parts)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=16, key=self._key).digest()

    def _bucket(self, key: bytes) -> range:
        first = int.from_bytes(key[:4], "little") % (SLOTS // _BUCKET) * _BUCKET
        return range(first, first + _BUCKET)

    def _place(self, key: bytes) -> int | None:
        return next((place for place in self._bucket(key) if self._read(place)[0] == key), None)

    def _room(self, key: bytes, now: float) -> int:
        """Return the entry of a key's bucket that is missed least (rule 2); a right credential is missed least of those that count."""

        def worth(place: int) -> tuple[bool, int, float]:
            owner, strikes = self._read(place)
            if owner == _EMPTY:
                return False, -1, 0.0
            if strikes.count == _GOOD:
                return now - strikes.last < _GOOD_SECONDS, 1, strikes.last
            return not strikes.is_over(now), strikes.count, strikes.last

        return min(self._bucket(key), key=worth)

    def _read(self, place: int) -> tuple[bytes, Strikes]:
        key, count, last, until = _ENTRY.unpack_from(self._map, _HEADER + place * _ENTRY.size)
        return key, Strikes(count, last, until)

    def _write(self, place: int, key: bytes, strikes: Strikes) -> None:
        _ENTRY.pack_into(self._map, _HEADER + place * _ENTRY.size, key, strikes.count, strikes.last, strikes.until)
