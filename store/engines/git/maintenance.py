"""What need not be done at once, done by the owner: packing, repacking, collecting; a thread does it while the store is open.

1. Only the owner maintains. Every step may die at any point: what is removed was made redundant, durably, before.
2. A repack that drops unreachable objects runs only after a flush, with flushes paused, and never drops what is younger than an hour:
   a commit of another process writes its pack before the row that makes it reachable.
3. Gathering small packs (geometric) drops nothing and runs at any time. There are never many packs: every miss looks into all.
4. Chunks of large files go after the blob that pointed to them went, and only while nobody stores large files.
5. `packing` keeps repacks away from a caller that reads packs by git. A repack holds a lock that its git child inherits: when the owner
   is killed, the next one waits for the child that still works.
6. A failure in the thread is logged and tried again at the next turn; it never stops the thread, and `maintain` raises it to its caller.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from store.engines.git.commands import run_git
from store.engines.git.content import disk_errors
from store.engines.git.database import Database
from store.engines.git.housekeeping import evict_contents, measure_folder, sweep_upper_files
from store.engines.git.journal import Journal
from store.engines.git.large import Collected, LargeStore
from store.engines.git.packs import Sync, remove_abandoned
from store.errors import StoreError
from store.model import Reclaimed

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How eagerly the thread works: seconds between turns and sweeps, bounds of the journal, number of packs, bytes of the cache."""

    turn: float = 1.0
    flush_after: float = 5.0
    flush_bytes: int = 32 << 20
    sweep_after: float = 600.0
    packs: int = 20
    cache_bytes: int = 20 << 30


class Maintainer:
    """The upkeep of one store."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        large: LargeStore,
        *,
        sync: Sync = os.fsync,
        pace: Pace = Pace(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Care for the store in `folder`: ``repo.git``, ``cas``, ``up`` and ``lo`` in it."""
        self._git_dir = folder / "repo.git"
        self._packs = self._git_dir / "objects" / "pack"
        self._contents = folder / "cas"
        self._uppers = folder / "up"
        self._database = database
        self._large = large
        self._journal = Journal(database, self._git_dir, sync=sync)
        self._pace = pace
        self._clock = clock
        self._repacking = threading.Lock()
        self._upkeep = self._git_dir / "upkeep"
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._flushed = self._swept = clock()

    def recover(self) -> None:
        """Remove what an owner that died left in the repository, then flush. To be called once, before anything else."""
        with self._repack_lock():
            for lock in self._git_dir.glob("*.lock"):
                lock.unlink()
            remove_abandoned(self._packs)
        self.flush()

    def start(self) -> None:
        """Begin to work in the background."""
        self._thread = threading.Thread(target=self._run, name="store maintenance", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is under way, flush, and stop working. Repeats do nothing."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self.flush()

    def flush(self) -> int:
        """Put everything acknowledged so far into packs and refs and return the number of objects moved. Raises `NoSpace`."""
        with disk_errors("flush"):
            return self._journal.flush()

    @contextmanager
    def packing(self) -> Iterator[None]:
        """Keep repacks away for the length of the block; waits for one that runs."""
        with self._repacking:
            yield

    def maintain(self, now: int) -> Reclaimed:
        """Do everything at once and return what was freed. Raises `NoSpace`, `StoreError`."""
        with disk_errors("maintenance"):
            return self._maintain(now)

    def _maintain(self, now: int) -> Reclaimed:
        before = self._pack_bytes()
        objects = self._repack_all()
        freed = self._collect_large()
        freed_bytes = max(before - self._pack_bytes(), 0) + freed.bytes
        swept = evict_contents(self._contents, self._pace.cache_bytes, now).plus(sweep_upper_files(self._uppers, self._database, now))
        self._database.checkpoint()
        return Reclaimed(freed_bytes + swept.bytes, objects, freed.files + swept.files)

    def _run(self) -> None:
        while not self._stopping.wait(self._pace.turn):
            try:
                self._take_turn(self._clock())
            except (StoreError, OSError, apsw.Error):
                _LOG.exception("maintenance failed; it is tried again")

    def _take_turn(self, now: float) -> None:
        size = self._journal.waiting()
        if size is not None and (size >= self._pace.flush_bytes or now - self._flushed >= self._pace.flush_after):
            self.flush()
            self._database.checkpoint()
            self._flushed = now
            self._gather_packs()
        if now - self._swept >= self._pace.sweep_after:
            evict_contents(self._contents, self._pace.cache_bytes, now)
            sweep_upper_files(self._uppers, self._database, now)
            self._swept = now

    def _gather_packs(self) -> None:
        if sum(1 for _ in self._packs.glob("pack-*.idx")) > self._pace.packs:
            with self._repack_lock() as lock:
                run_git(self._git_dir, "repack", "--geometric=2", "-d", "--quiet", inherited=(lock,))

    def _repack_all(self) -> int:
        """Write one pack of what is reachable, keep what is young, drop the rest, and return the number of objects moved into packs."""
        with self._repack_lock() as lock, self._journal.paused() as moved:
            remove_abandoned(self._packs)
            run_git(self._git_dir, "repack", "-a", "-d", "--quiet", "--cruft", "--cruft-expiration=1.hour.ago", inherited=(lock,))
            return moved

    @contextmanager
    def _repack_lock(self) -> Iterator[int]:
        with self._repacking:
            descriptor = os.open(self._upkeep, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield descriptor
            finally:
                os.close(descriptor)

    def _collect_large(self) -> Collected:
        return self._large.collect(self._live_large) or Collected(0, 0)

    def _live_large(self) -> list[bytes]:
        """Return the large files whose pointers exist, and forget the others."""
        rows = self._database.select("SELECT oid, sha256 FROM large")
        asked = b"".join(oid.hex().encode() + b"\n" for oid, _ in rows)
        answers = run_git(self._git_dir, "cat-file", "--batch-check=%(objectname)", given=asked).split(b"\n")
        journal = {oid for (oid,) in self._database.select("SELECT oid FROM object WHERE kind = 3")}
        dead = {oid for (oid, _), answer in zip(rows, answers, strict=False) if answer.endswith(b" missing") and oid not in journal}
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM large WHERE oid = ?", [(oid,) for oid in dead])
        return [sha256 for oid, sha256 in rows if oid not in dead]

    def _pack_bytes(self) -> int:
        return measure_folder(self._packs)
