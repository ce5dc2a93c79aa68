"""The database of a store: its schema, its transactions, and when they are on stable storage.

1. The database is the authority for branches, working layers and commits not yet packed; refs and packs follow it.
2. Every process opens it itself. One connection writes, one reads; each is used by one thread at a time.
3. A change is one short transaction. It survives the end of the process when `transaction` ends, power loss when a `flush`
   that began later returns. The write lock is never held while the disk syncs, so one process' sync stops no other.
4. One sync serves every transaction that ended before it began, whichever thread waits for it.
5. Whether anything was committed since one last looked is asked of `head`, not of `Connection.data_version`: that one stays what
   it was until the connection next reads.
6. No caller waits for a checkpoint.
7. Nothing here knows what a row means.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw

from store.engines.git.checkpoints import BACKSTOP_PAGES, PAGES, Checkpoints
from store.engines.git.packs import Sync, sync_folder
from store.engines.git.steps import step
from store.engines.git.syncs import Syncs
from store.engines.git.walindex import WalIndex, count_frames
from store.errors import NoSpace, StoreError

SCHEMA_VERSION = 2

_SCHEMA = """
CREATE TABLE branch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: folders and locks carry it
    name TEXT NOT NULL UNIQUE,
    head BLOB NOT NULL,
    base BLOB NOT NULL,
    tree BLOB NOT NULL,                    -- of the head
    created INTEGER NOT NULL,
    protected INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,    -- grows with every change of the working layer
    dirty INTEGER NOT NULL DEFAULT 0,      -- the working layer has something for a commit to look at
    seal INTEGER NOT NULL DEFAULT 0,       -- the version at the last commit
    swept INTEGER NOT NULL DEFAULT 0,      -- rows up to this version may be gone: whoever is behind reads everything
    inherited_ns INTEGER NOT NULL,         -- the time of files that no one touched on this branch
    published_head BLOB                    -- the head in the refs that git sees
);
CREATE INDEX branch_dirty ON branch (name) WHERE dirty;
CREATE TABLE snapshot (name TEXT PRIMARY KEY, target BLOB NOT NULL, created INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE object (seq INTEGER PRIMARY KEY, oid BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE large (oid BLOB PRIMARY KEY, sha256 BLOB NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rename (                      -- as they happened between a commit and one of its parents
    target BLOB NOT NULL,
    parent BLOB NOT NULL,
    new BLOB NOT NULL,
    old BLOB NOT NULL,
    PRIMARY KEY (target, parent, new)
) WITHOUT ROWID;
CREATE TABLE node (
    branch INTEGER NOT NULL,
    id INTEGER NOT NULL,
    kind INTEGER NOT NULL,                 -- 0: gone
    mode INTEGER NOT NULL,
    lower BLOB,                            -- the blob or tree below, if any
    size INTEGER,                          -- null while it is the size of the blob below
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    atime_ns INTEGER NOT NULL,
    uid INTEGER,
    gid INTEGER,
    upper INTEGER,                         -- the number of the file that holds the content
    target BLOB,                           -- of a symlink
    xattrs BLOB,
    dirty INTEGER NOT NULL,                -- what stands in the head's tree may differ
    ver INTEGER NOT NULL,                  -- the version of the last change that anybody can see
    rev INTEGER NOT NULL,                  -- the version of the last change of the row
    content BLOB,                          -- what identifies the content: without an upper file, or while its ctime is this
    stamped_ns INTEGER,
    PRIMARY KEY (branch, id)
) WITHOUT ROWID;
CREATE INDEX node_rev ON node (branch, rev);
CREATE TABLE name (
    branch INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    name BLOB NOT NULL,
    node INTEGER NOT NULL,                 -- 0: nothing is here, whatever is below
    dirty INTEGER NOT NULL,
    origin BLOB,                           -- where the head has what moved here
    ver INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    PRIMARY KEY (branch, parent, name)
) WITHOUT ROWID;
CREATE INDEX name_rev ON name (branch, rev);
CREATE TABLE staged (                      -- upper files that no node has
    id TEXT PRIMARY KEY,
    branch INTEGER NOT NULL,
    upper INTEGER NOT NULL,
    size INTEGER NOT NULL,
    created INTEGER NOT NULL               -- in seconds
) WITHOUT ROWID;
CREATE INDEX staged_branch ON staged (branch);
CREATE TABLE draft (                       -- small contents that are in no commit yet
    id INTEGER PRIMARY KEY, branch INTEGER NOT NULL, oid BLOB NOT NULL, data BLOB NOT NULL, UNIQUE (oid, branch)
);
CREATE INDEX draft_branch ON draft (branch);
"""

_UPGRADES = (
    "",
    """
ALTER TABLE node ADD COLUMN content BLOB;
ALTER TABLE node ADD COLUMN stamped_ns INTEGER;
CREATE TABLE staged (
    id TEXT PRIMARY KEY, branch INTEGER NOT NULL, upper INTEGER NOT NULL, size INTEGER NOT NULL, created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX staged_branch ON staged (branch);
CREATE TABLE draft (
    id INTEGER PRIMARY KEY, branch INTEGER NOT NULL, oid BLOB NOT NULL, data BLOB NOT NULL, UNIQUE (oid, branch)
);
CREATE INDEX draft_branch ON draft (branch);
""",
)
"""What leads from each version of the schema to the next, by the version one comes from."""

_BUSY_SECONDS = 60.0

_FULL = "the disk below it is full"

Row = tuple[Any, ...]

_opening = threading.Lock()
"""Held while connections of this process come and go, so that no mapping of the log's index goes while another one comes."""


class Database:
    """The rows of one store, as one process sees them."""

    def __init__(self, path: Path, *, sync: Sync = os.fdatasync) -> None:
        """Open the database, making it when it is missing. Raises `StoreError` when a later release wrote it."""
        self._sync = sync
        self._writing = threading.RLock()
        self._reading = threading.Lock()
        with _opening:
            self._writer = _connect(path)
            self._reader = _connect(path)
            self.index = WalIndex(path)
            self._checkpoints = Checkpoints(_connect(path), self._writing)
        if self.index.head() is not None:
            self._writer.execute(f"PRAGMA wal_autocheckpoint = {BACKSTOP_PAGES}")
        with self.transaction() as connection:
            _prepare_schema(connection)
        self._reader.execute("SELECT 1 FROM branch").fetchall()
        self._wal = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._syncs = Syncs()
        self._mine = threading.local()
        sync_folder(path.parent, sync)

    def transaction(self) -> Transaction:
        """Run a block as one transaction that sees every earlier one; an exception undoes it. Raises `NoSpace`."""
        return Transaction(self)

    def head(self) -> bytes | None:
        """Return bytes that are the same as long as nobody commits anything; None when that cannot be told."""
        return self.index.head()

    def select(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a statement that only reads."""
        with self._reading:
            return self._reader.execute(statement, values).fetchall()

    def select_one(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a statement that only reads, or None."""
        with self._reading:
            return next(self._reader.execute(statement, values), None)

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """Run the block with a connection whose reads all see the same instant."""
        with self._reading:
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._reader.execute("ROLLBACK")

    def flush(self) -> None:
        """Return when every transaction that ended before this call is on stable storage; at once where this thread defers that."""
        if not getattr(self._mine, "defers", False):
            self._syncs.wait(self._sync_wal)

    @contextmanager
    def deferring(self) -> Iterator[None]:
        """Run a block whose `flush`, in this thread, waits for nothing: who began it calls `flush` after it."""
        self._mine.defers = True
        try:
            yield
        finally:
            self._mine.defers = False

    def checkpoint(self) -> None:
        """Move finished transactions from the log into the database file, without waiting for anyone."""
        self._checkpoints.run()

    def close(self) -> None:
        """Release the connections."""
        self._checkpoints.close()
        with _opening, self._writing, self._reading:
            self._reader.close()
            self._writer.close()
            self.index.close()
            os.close(self._wal)

    def begin(self) -> apsw.Connection:
        """Begin a transaction, which `end` ends, and return its connection: what `transaction` is made of."""
        self._writing.acquire()
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._writing.release()
            raise
        return self._writer

    def end(self, *, keep: bool) -> None:
        """End the transaction that this thread began."""
        try:
            if keep:
                step("database: commit")
                self._writer.execute("COMMIT")
                self._note_growth()
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            self._writing.release()
        step("database: committed")

    def _note_growth(self) -> None:
        head = self.index.head()
        if head is not None:
            self._checkpoints.note(count_frames(head))

    def _sync_wal(self) -> None:
        step("database: sync")
        self._sync(self._wal)


class Transaction:
    """A block that is one transaction. A class, because four generators cost a removal as much as its rows do."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        """Prepare a transaction of a database."""
        self._database = database

    def __enter__(self) -> apsw.Connection:
        return self._database.begin()

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._database.end(keep=kind is None)
        except apsw.FullError as full:
            raise NoSpace("the store", _FULL) from full
        if isinstance(failure, apsw.FullError):
            raise NoSpace("the store", _FULL) from failure


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), statementcachesize=200)
    connection.set_busy_handler(_wait_for_lock)
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", f"wal_autocheckpoint = {PAGES}", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _wait_for_lock(attempts: int) -> bool:
    """Wait a little for another process' transaction; they are short, so short waits win. False gives up after about a minute."""
    pause = min(0.0001 * (attempts + 1), 0.005)
    time.sleep(pause)
    return attempts * pause < _BUSY_SECONDS


def _prepare_schema(connection: apsw.Connection) -> None:
    found = connection.pragma("user_version")
    if found > SCHEMA_VERSION:
        raise StoreError(f"schema {found}", f"written by a later release; this one knows {SCHEMA_VERSION}")
    if found == SCHEMA_VERSION:
        return
    for statements in _UPGRADES[found:] if found else (_SCHEMA,):
        connection.execute(statements)
    connection.pragma("user_version", SCHEMA_VERSION)
