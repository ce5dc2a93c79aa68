"""The chain of records as rows. The tables keep them append-only and gapless; see `schema`."""
# ruff: noqa: S608 - what is put into statements are constants of this module; values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import apsw

from trust.chain import GENESIS, Row
from trust.engines.sqlite.database import Database
from trust.errors import ChainBroken, Unknown

_COLUMNS = "records.sequence, time, phase, refers, kind, principal, run, lease, body, previous, hash, salt"


class Records:
    """See `trust.contract.RecordRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def head(self) -> tuple[int, bytes]:
        """See the contract."""
        rows = self._database.rows("SELECT sequence, hash FROM records ORDER BY sequence DESC LIMIT 1")
        return (rows[0][0], rows[0][1]) if rows else (0, GENESIS)

    def append(self, rows: Sequence[Row]) -> None:
        """See the contract."""
        try:
            self._database.change_many("INSERT INTO records VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        except apsw.ConstraintError as error:
            raise ChainBroken("record", str(error)) from error

    def find(self, sequence: int) -> Row:
        """See the contract."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM records WHERE sequence = ?", (sequence,))
        if not rows:
            raise Unknown(sequence, "no such record")
        return cast(Row, rows[0])

    def after(self, sequence: int, limit: int, kind: str | None = None, run: str | None = None) -> Sequence[Row]:
        """See the contract."""
        wanted = [(column, value) for column, value in (("kind", kind), ("run", run)) if value is not None]
        where = "".join(f" AND {column} = ?" for column, _ in wanted)
        statement = f"SELECT {_COLUMNS} FROM records WHERE sequence > ?{where} ORDER BY sequence LIMIT ?"
        return cast(list[Row], self._database.rows(statement, (sequence, *(value for _, value in wanted), limit)))

    def first(self) -> int:
        """See the contract."""
        return int(self._database.rows("SELECT coalesce(min(sequence), 1) FROM records")[0][0])

    def hashes(self, first: int, last: int) -> Sequence[bytes]:
        """See the contract."""
        rows = self._database.rows("SELECT hash FROM records WHERE sequence BETWEEN ? AND ? ORDER BY sequence", (first, last))
        return [row[0] for row in rows]

    def last_before(self, time: int) -> int:
        """See the contract."""
        later = self._database.rows("SELECT sequence FROM records WHERE time >= ? ORDER BY sequence LIMIT 1", (time,))
        return later[0][0] - 1 if later else self.head()[0]

    def redact(self, sequence: int, commitment: bytes) -> None:
        """See the contract."""
        with self._database.upkeep():
            self._database.change("UPDATE records SET body = '', salt = ? WHERE sequence = ?", (commitment, sequence))

    def remove(self, first: int, last: int) -> None:
        """See the contract."""
        with self._database.upkeep():
            self._database.change("DELETE FROM records WHERE sequence BETWEEN ? AND ?", (first, last))

    def forget(self) -> None:
        """See the contract."""
        self._database.forget()

    def await_outcomes(self, intents: Sequence[int]) -> None:
        """See the contract."""
        self._database.change_many("INSERT INTO intents VALUES(?)", [(sequence,) for sequence in intents])

    def close_intent(self, sequence: int) -> bool:
        """See the contract."""
        return self._database.change("DELETE FROM intents WHERE sequence = ?", (sequence,)) == 1

    def open_intents(self) -> Sequence[Row]:
        """See the contract."""
        statement = f"SELECT {_COLUMNS} FROM intents JOIN records USING (sequence) ORDER BY records.sequence"
        return cast(list[Row], self._database.rows(statement))
