"""Histories with paths left out: one folder for each selection, which git reads beside the store's own repository.

1. A commit is shown with what is kept of its tree, with its parents as they are shown, and with every other byte of its own. So one of
   whose history everything is kept is shown as itself.
2. What became of commits and directories is remembered in ``map.db``. Objects that exist only here lie in packs of the folder; the store
   itself is borrowed from. All of it is a cache: removed, it is made again with the same identities.
3. One thread of one process at a time extends a folder; others wait. A pack is there before the rows that need it.
4. Nothing is synced, so a folder is not used after a restart of the machine.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import apsw

from store.engines.git.commands import run_git
from store.engines.git.objects import GitObject, Kind, encode_commit, encode_tree, make_object
from store.engines.git.packs import PackWriter
from store.engines.git.vault import Vault
from store.exchange import Selection
from store.partial import select_tree
from store.trees import Listing, ReadTree

EVERYTHING = "everything"
"""The name of the selection that leaves nothing out; no other selection may have it."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS shown (whole BLOB PRIMARY KEY, shown BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS shown_by ON shown (shown);
CREATE TABLE IF NOT EXISTS tree (directory BLOB, whole BLOB, shown BLOB, PRIMARY KEY (directory, whole)) WITHOUT ROWID;
"""
_MOST_PACKS = 20
_PATIENCE_MS = 600_000


class Projection:
    """One selection of the histories of one store."""

    def __init__(self, folder: Path, objects: Path, vault: Vault, selection: Selection) -> None:
        """Keep what is made in ``folder/<name of the selection>``; `objects` is where the store's own repository has its objects."""
        if not _PLAIN.fullmatch(selection.name):
            raise ValueError(f"{selection.name!r} is no plain name")
        self.name = selection.name
        self.objects = folder / selection.name / "objects"
        self._packs = self.objects / "pack"
        self._vault = vault
        self._keep = selection.keep
        self._lock = threading.Lock()
        make_object_folder(self.objects, objects)
        self._rows = apsw.Connection(str(self.objects.parent / "map.db"))
        self._rows.set_busy_timeout(_PATIENCE_MS)
        self._rows.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        self._rows.execute(_SCHEMA)

    def show(self, commits: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the identities under which commits are shown, making what is missing of their histories."""
        wanted = list(commits)
        with self._lock:
            known = {commit: shown for commit in wanted if (shown := self._find(commit)) is not None}
            missing = [commit for commit in wanted if commit not in known]
            if missing:
                self._extend(missing)
                known |= {commit: shown for commit in missing if (shown := self._find(commit)) is not None}
        return known

    def origins(self, shown: bytes) -> list[bytes]:
        """Return the commits that are shown under an identity; several when they differ in nothing but what is left out."""
        with self._lock:
            return [whole for (whole,) in self._rows.execute("SELECT whole FROM shown WHERE shown = ? ORDER BY whole", (shown,))]

    def select(self, read: ReadTree, tree: bytes) -> bytes:
        """Return what is kept of a tree, which may be one that only `read` knows, storing what is new of it."""
        with self._lock, self._writing() as pack:
            return self._select(read, tree, pack)

    def use(self) -> bool:
        """Note that the folder is used, and tell whether it is still there; one that is gone is closed."""
        try:
            os.utime(self.objects.parent)
        except FileNotFoundError:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Release the rows."""
        with self._lock:
            self._rows.close()

    def _find(self, commit: bytes) -> bytes | None:
        row = self._rows.execute("SELECT shown FROM shown WHERE whole = ?", (commit,)).fetchone()
        return None if row is None else row[0]

    def _extend(self, commits: Iterable[bytes]) -> None:
        with self._writing() as pack:
            for commit in self._unknown(commits):
                self._rows.execute("INSERT OR IGNORE INTO shown VALUES (?, ?)", (commit, self._make(commit, pack)))

    @contextmanager
    def _writing(self) -> Iterator[PackWriter]:
        """Run the block as the only one that extends the folder; what it wrote is there when it ends, or none of it."""
        self._rows.execute("BEGIN IMMEDIATE")
        try:
            with PackWriter(self._packs, sync=lambda _: None) as pack:
                yield pack
            self._rows.execute("COMMIT")
        finally:
            if self._rows.in_transaction:
                self._rows.execute("ROLLBACK")
        self._gather_packs()

    def _unknown(self, commits: Iterable[bytes]) -> Iterator[bytes]:
        """Yield what these commits reach and what is not known yet, parents first."""
        pending = [(commit, False) for commit in commits]
        seen: set[bytes] = set()
        while pending:
            commit, ready = pending.pop()
            if ready:
                yield commit
            elif commit not in seen and self._find(commit) is None:
                seen.add(commit)
                pending.append((commit, True))
                pending += [(parent, False) for parent in self._vault.commit(commit).parents]

    def _make(self, commit: bytes, pack: PackWriter) -> bytes:
        whole = self._vault.commit(commit)
        parents = tuple(self._find(parent) or parent for parent in whole.parents)
        tree = self._select(self._vault.tree, whole.tree, pack)
        if (tree, parents) == (whole.tree, whole.parents):
            return commit
        return _add(pack, make_object(Kind.COMMIT, encode_commit(replace(whole, tree=tree, parents=parents))))

    def _select(self, read: ReadTree, tree: bytes, pack: PackWriter) -> bytes:
        def write(listing: Listing) -> bytes:
            return _add(pack, make_object(Kind.TREE, encode_tree(listing)))

        return select_tree(read, write, tree, self._keep, _Remembered(self._rows))

    def _gather_packs(self) -> None:
        if sum(1 for _ in self._packs.glob("pack-*.idx")) > _MOST_PACKS:
            run_git(self.objects.parent, "repack", "--geometric=2", "-d", "-l", "--quiet")


class _Remembered:
    """`store.partial.Memory` in rows."""

    def __init__(self, rows: apsw.Connection) -> None:
        self._rows = rows

    def find(self, directory: bytes, content: bytes) -> tuple[bytes | None] | None:
        """Return what became of a directory's content, None when it is not known."""
        row = self._rows.execute("SELECT shown FROM tree WHERE directory = ? AND whole = ?", (directory, content)).fetchone()
        return None if row is None else (row[0],)

    def put(self, directory: bytes, content: bytes, kept: bytes | None) -> None:
        """Remember what became of a directory's content."""
        self._rows.execute("INSERT OR IGNORE INTO tree VALUES (?, ?, ?)", (directory, content, kept))


def make_object_folder(objects: Path, *borrowed: Path) -> None:
    """Make a repository's folder of objects, which borrows from others, and around it what git needs to take it for a repository."""
    (objects / "pack").mkdir(parents=True, exist_ok=True)
    (objects / "info").mkdir(exist_ok=True)
    (objects.parent / "refs").mkdir(exist_ok=True)
    (objects / "info" / "alternates").write_text("".join(f"{path}\n" for path in borrowed))
    (objects.parent / "HEAD").write_text("ref: refs/heads/none\n")


def _add(pack: PackWriter, item: GitObject) -> bytes:
    pack.add(item)
    return item.oid
