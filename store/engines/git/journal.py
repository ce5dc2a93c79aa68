"""From the journal to git: acknowledged objects into packs, heads into refs, always in an order that ordinary git finds valid.

1. A row of the journal goes only after the pack that holds its object is on stable storage. A death in between leaves both, and the
   next flush writes the object again.
2. A ref is published only once everything its commit reaches is in packs: heads are read at the instant that bounds the flush.
3. All refs are one file, replaced whole: lock, sync, rename, sync of the folder.
4. Branch heads, the commits that branches were forked at, and snapshots are published, so whatever they reach outlives a repack.
5. One process flushes: the owner. Commits of every process go on meanwhile.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from store.engines.git.database import Database
from store.engines.git.objects import GitObject, Kind
from store.engines.git.packs import Sync, sync_folder, write_pack
from store.engines.git.steps import step

_BATCH = 16
_HEADER = "# pack-refs with: peeled fully-peeled sorted \n"


@dataclass(frozen=True, slots=True)
class Instant:
    """What the database held at one moment: the last row of the journal and every ref (name -> commit)."""

    last: int
    refs: Mapping[str, bytes]


class Journal:
    """The way of one store's objects and heads into its repository."""

    def __init__(self, database: Database, git_dir: Path, *, sync: Sync = os.fsync) -> None:
        """Move the rows of `database` into the bare repository `git_dir`."""
        self._database = database
        self._git_dir = git_dir
        self._sync = sync
        self._turn = threading.Lock()
        self._published: str | None = None

    def waiting(self) -> int | None:
        """Return the bytes that wait in the journal; None when nothing waits and every head is published."""
        (objects, size), *_ = self._database.select("SELECT count(*), coalesce(sum(length(data)), 0) FROM object")
        heads = self._database.select_one("SELECT 1 FROM branch WHERE published_head IS NOT head LIMIT 1")
        return None if objects == 0 and heads is None else int(size)

    def flush(self) -> int:
        """Put everything acknowledged so far into packs and refs, durably, and return the number of objects moved."""
        with self.paused() as moved:
            return moved

    @contextmanager
    def paused(self) -> Iterator[int]:
        """Flush, and let no other flush begin before the block ends; yields the number of objects moved."""
        with self._turn:
            instant = self._read_instant()
            moved = self._pack(instant.last)
            self._publish(instant.refs)
            yield moved

    def _read_instant(self) -> Instant:
        with self._database.snapshot() as rows:
            last = next(rows.execute("SELECT coalesce(max(seq), 0) FROM object"))[0]
            heads = list(rows.execute("SELECT name, head, base FROM branch"))
            snapshots = list(rows.execute("SELECT name, target FROM snapshot"))
        refs = {f"refs/heads/{name}": head for name, head, _ in heads}
        refs |= {f"refs/bases/{base.hex()}": base for _, _, base in heads}
        refs |= {f"refs/tags/{name}": target for name, target in snapshots}
        return Instant(int(last), refs)

    def _pack(self, last: int) -> int:
        step("journal: pack")
        if write_pack(self._git_dir / "objects" / "pack", self._rows(last), sync=self._sync) is None:
            return 0
        step("journal: delete")
        with self._database.transaction() as rows:
            rows.execute("DELETE FROM object WHERE seq <= ?", (last,))
            return int(rows.changes())

    def _rows(self, last: int) -> Iterator[GitObject]:
        position = 0
        statement = "SELECT seq, oid, kind, data FROM object WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        while rows := self._database.select(statement, (position, last, _BATCH)):
            position = rows[-1][0]
            yield from (GitObject(oid, Kind(kind), data) for _, oid, kind, data in rows)

    def _publish(self, refs: Mapping[str, bytes]) -> None:
        text = _HEADER + "".join(f"{refs[name].hex()} {name}\n" for name in sorted(refs))
        if text == self._published:
            return
        lock = self._git_dir / "packed-refs.lock"
        step("refs: write")
        with open(lock, "x") as file:
            file.write(text)
            file.flush()
            step("refs: sync")
            self._sync(file.fileno())
        step("refs: name")
        lock.rename(self._git_dir / "packed-refs")
        step("refs: sync folder")
        sync_folder(self._git_dir, self._sync)
        self._note_published(refs)
        self._published = text

    def _note_published(self, refs: Mapping[str, bytes]) -> None:
        with self._database.transaction() as rows:
            stale = list(rows.execute("SELECT id, name FROM branch WHERE published_head IS NOT head"))
            published = [(refs[f"refs/heads/{name}"], key) for key, name in stale if f"refs/heads/{name}" in refs]
            rows.executemany("UPDATE branch SET published_head = ? WHERE id = ?", published)
