"""What a witness keeps: the logs it knows, and the last checkpoint it cosigned of each.

1. Comparing with the last checkpoint and putting the next one in its place is one transaction, on stable storage before anybody hears
   of it.
2. Any thread: each call has a connection of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from witness.notes import Key, parse_key

_BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE IF NOT EXISTS logs(origin TEXT PRIMARY KEY, key TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS heads(origin TEXT PRIMARY KEY REFERENCES logs, size INTEGER NOT NULL, root BLOB NOT NULL, note TEXT NOT NULL)
WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Head:
    """The last checkpoint that was cosigned: its size, its root, and the whole note with the log's signature and the witness's."""

    size: int
    root: bytes
    note: str


class Shelf:
    """The state of a witness in one SQLite file."""

    def __init__(self, path: Path) -> None:
        """Keep the state at `path`, making the tables if there are none."""
        self._path = path
        with self._transaction() as connection:
            for statement in _TABLES.split(";"):
                connection.execute(statement)

    def add_log(self, key: Key) -> None:
        """Know a log by its key; another key for a known origin takes the former one's place, its last checkpoint stays."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO logs VALUES(?, ?) ON CONFLICT(origin) DO UPDATE SET key = excluded.key", (key.name, key.render())
            )

    def logs(self) -> list[tuple[Key, Head | None]]:
        """Return the known logs with what was last cosigned of each."""
        with self._transaction() as connection:
            keys = [parse_key(row[0]) for row in connection.execute("SELECT key FROM logs ORDER BY origin")]
            return [(key, _head(connection, key.name)) for key in keys]

    def key(self, origin: str) -> Key | None:
        """Return the key of a log, None for an unknown one."""
        with self._transaction() as connection:
            row = connection.execute("SELECT key FROM logs WHERE origin = ?", (origin,)).fetchone()
        return parse_key(row[0]) if row else None

    def advance(self, origin: str, decide: Callable[[Head | None], Head]) -> Head:
        """Put what `decide` makes of the last head in its place and return it; what `decide` raises leaves all as it was."""
        with self._transaction() as connection:
            head = decide(_head(connection, origin))
            connection.execute("INSERT OR REPLACE INTO heads VALUES(?, ?, ?, ?)", (origin, head.size, head.root, head.note))
        return head

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _head(connection: sqlite3.Connection, origin: str) -> Head | None:
    row = connection.execute("SELECT size, root, note FROM heads WHERE origin = ?", (origin,)).fetchone()
    return Head(*row) if row else None
