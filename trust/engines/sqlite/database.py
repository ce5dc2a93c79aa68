"""Connections to one SQLite file: one writer for the process, one reader for each thread.

1. The writer is used under a lock of the process and inside BEGIN IMMEDIATE, which orders it with other processes; waiting for these
   is bounded.
2. A thread inside its own transaction reads through the writer and so sees what it wrote; everyone else reads committed state.
3. Every statement is read to its end at once: no cursor keeps an old snapshot alive.
4. Commits go to the write-ahead log without a sync; `GroupSync` makes the log durable outside of the lock. SQLite itself syncs the log
   before a checkpoint and the database after it, so what a checkpoint removed from the log was durable before.
5. The database file itself is opened by SQLite only: closing any other descriptor of it would drop the process's locks.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from trust.contract import LAZY_SECONDS
from trust.engines.sqlite.schema import SETTINGS, STEPS, VERSION, authorize, authorize_upkeep
from trust.engines.sqlite.sync import GroupSync
from trust.engines.sqlite.walindex import WalIndex
from trust.errors import RecorderUnavailable

_BUSY_SECONDS = 10.0
_BUSY_STEP = 0.0005
_UNAVAILABLE = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ProtocolError,
    apsw.NoMemError,
    apsw.ConnectionClosedError,
)


class Database:
    """One database file, for every thread of this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._opening = threading.Lock()  # of its own: opening a reader must not wait for a transaction
        self._owner: int | None = None
        self._durable = False
        self._local = threading.local()
        self._readers: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()  # a thread's reader ends with the thread
        self._closed = False
        self._log: int | None = None
        self._sync = GroupSync(self._sync_log, LAZY_SECONDS)
        with _translated():
            self._writer = _open_writer(path)
        self._index = WalIndex(path)

    def rows(self, statement: str, bindings: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return every row of a statement. Raises `RecorderUnavailable`; constraint violations stay `apsw.ConstraintError`."""
        connection = self._writer if self._owner == threading.get_ident() else self._reader()
        try:
            return connection.execute(statement, bindings).fetchall()
        except _UNAVAILABLE as error:
            raise _unavailable(error) from error

    def change(self, statement: str, bindings: tuple[Any, ...] = ()) -> int:
        """Carry out a statement inside the thread's transaction and return how many rows it changed. Raises as `rows`."""
        if self._owner != threading.get_ident():
            raise RuntimeError("a change needs a transaction")
        try:
            self._writer.execute(statement, bindings).fetchall()
        except _UNAVAILABLE as error:
            raise _unavailable(error) from error
        return self._writer.changes()

    def change_many(self, statement: str, bindings: Iterable[tuple[Any, ...]]) -> None:
        """Carry out a statement once for each of several bindings. Raises as `rows`."""
        if self._owner != threading.get_ident():
            raise RuntimeError("a change needs a transaction")
        try:
            self._writer.executemany(statement, bindings).fetchall()
        except _UNAVAILABLE as error:
            raise _unavailable(error) from error

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[None]:
        """Run a block as one transaction; see the contract."""
        if self._owner == threading.get_ident():
            self._durable |= durable
            yield
            return
        with self._lock:
            self._begin(durable)
            try:
                yield
                with _translated():
                    self._writer.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._owner = None
            ticket, wanted = self._sync.written(), self._durable
        if wanted:
            self._sync.wait(ticket)
        else:
            self._sync.soon()

    @contextmanager
    def upkeep(self) -> Iterator[None]:
        """Let a block inside the thread's transaction redact and remove records, as far as the triggers allow it."""
        self._writer.authorizer = authorize_upkeep
        try:
            yield
        finally:
            self._writer.authorizer = authorize

    def forget(self) -> None:
        """Take what was removed out of the write-ahead log too: all of it goes into the database, and the log is emptied."""
        with self._lock, _translated():
            self._sync.flush()
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def head(self) -> bytes | None:
        """Return bytes that are the same as long as nobody commits anything; None when that cannot be told."""
        return self._index.head()

    def in_transaction(self) -> bool:
        """Tell whether this thread is inside a transaction."""
        return self._owner == threading.get_ident()

    def flush(self) -> None:
        """Return once everything committed before is on stable storage."""
        self._sync.flush()

    def close(self) -> None:
        """Flush and close every connection. Repeats do nothing."""
        with self._lock, self._opening:
            if self._closed:
                return
            self._closed = True
        try:
            self._sync.close()
        finally:
            for connection in (*self._readers, self._writer):
                connection.close()
            self._index.close()
            if self._log is not None:
                os.close(self._log)

    def _begin(self, durable: bool) -> None:
        if self._closed:
            raise RecorderUnavailable(self._path, "closed")
        with _translated():
            self._writer.execute("BEGIN IMMEDIATE")
        self._owner, self._durable = threading.get_ident(), durable

    def _roll_back(self) -> None:
        if self._writer.in_transaction:  # after some errors SQLite has rolled back already
            self._writer.execute("ROLLBACK")

    def _reader(self) -> apsw.Connection:
        reader: apsw.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._opening, _translated():
                if self._closed:
                    raise RecorderUnavailable(self._path, "closed")
                reader = _connect(self._path, apsw.SQLITE_OPEN_READWRITE)
                reader.execute("PRAGMA query_only=ON")
                reader.authorizer = authorize
                self._readers.add(reader)
            self._local.reader = reader
        return reader

    def _sync_log(self) -> None:
        if self._log is None:
            self._log = os.open(f"{self._path}-wal", os.O_RDWR | os.O_CLOEXEC)
            directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)  # the names of the database and its log
            finally:
                os.close(directory)
        os.fdatasync(self._log)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except _UNAVAILABLE as error:
        raise _unavailable(error) from error


def _unavailable(error: apsw.Error) -> RecorderUnavailable:
    return RecorderUnavailable("trust database", str(error))


def _open_writer(path: Path) -> apsw.Connection:
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))  # before any connection: see rule 5
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    _migrate(connection, path)
    connection.authorizer = authorize
    return connection


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_handler(_wait_for_others)
    for setting in SETTINGS:
        connection.execute(setting).fetchall()
    return connection


def _wait_for_others(attempts: int) -> bool:
    """Sleep a little and tell whether to try again; SQLite's own steps of up to 100 ms are far too coarse for these transactions."""
    time.sleep(_BUSY_STEP)
    return attempts * _BUSY_STEP < _BUSY_SECONDS


def _migrate(connection: apsw.Connection, path: Path) -> None:
    with connection:
        found = connection.pragma("user_version")
        if found > VERSION:
            raise RecorderUnavailable(path, f"made by a later release (tables {found}, this one knows {VERSION})")
        for step in STEPS[found:]:
            connection.execute(step)
        if found < VERSION:
            connection.pragma("user_version", VERSION)
