"""The engine over SQLite: what the contract says, by tables.

1. Rules of the contract are kept by `Database`; the classes here only know their rows.
2. Opening is serialised between processes by a lock file, so that exactly one makes the tables.
3. SQLite before 3.51.3 is refused: it can lose a write-ahead log that several processes reset.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw

from trust.engines.sqlite.database import Database
from trust.engines.sqlite.documents import Documents, Policies
from trust.engines.sqlite.evidence import Checkpoints, Segments, Tree
from trust.engines.sqlite.gates import Gates
from trust.engines.sqlite.labels import Labels
from trust.engines.sqlite.leases import Leases
from trust.engines.sqlite.principals import Principals, Tokens
from trust.engines.sqlite.records import Records
from trust.errors import RecorderUnavailable
from trust.model import Epoch

OLDEST = (3, 51, 3)
"""The first SQLite without the WAL-reset bug (3.7.0 to 3.51.2)."""
FILE_NAME = "trust.db"
"""The database's name in its folder."""


def probe(version: str = "") -> str:
    """Return why SQLite cannot be used here, empty when it can. `version` stands in for the library's own."""
    found = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")) < OLDEST:
        return f"SQLite {found} can corrupt a shared write-ahead log; {'.'.join(map(str, OLDEST))} or later is needed"
    return ""


class SqliteEngine:
    """Everything the contract asks for. Make one with `open_engine`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: tuple[bytes | None, Epoch] = (None, Epoch(-1))  # the head of the log when the epoch was read, and the epoch
        self.principals = Principals(database)
        self.tokens = Tokens(database)
        self.leases = Leases(database)
        self.policies = Policies(database)
        self.gates = Gates(database)
        self.documents = Documents(database)
        self.labels = Labels(database)
        self.records = Records(database)
        self.tree = Tree(database)
        self.checkpoints = Checkpoints(database)
        self.segments = Segments(database)

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[None]:
        """See the contract."""
        return self._database.transaction(durable=durable)

    def in_transaction(self) -> bool:
        """See the contract."""
        return self._database.in_transaction()

    def flush(self) -> None:
        """See the contract."""
        self._database.flush()

    def epoch(self) -> Epoch:
        """See the contract."""
        head = self._database.head()
        seen = self._seen
        if head is not None and head == seen[0] and not self._database.in_transaction():
            return seen[1]
        epoch = Epoch(self._database.rows("SELECT value FROM meta WHERE name = 'epoch'")[0][0])
        if not self._database.in_transaction():
            self._seen = (head, epoch)
        return epoch

    def bump(self) -> None:
        """See the contract."""
        self._database.change("UPDATE meta SET value = value + 1 WHERE name = 'epoch'")

    def close(self) -> None:
        """See the contract."""
        self._database.close()


def open_engine(folder: Path) -> SqliteEngine:
    """Open the database of a folder, making both if missing. Raises `RecorderUnavailable`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder):
            return SqliteEngine(Database(folder / FILE_NAME))
    except OSError as error:
        raise RecorderUnavailable(folder, error.strerror or str(error)) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / "open.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
