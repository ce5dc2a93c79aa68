"""The ledger of labels as rows: of bytes at paths, of patterns, of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trust.engines.sqlite.database import Database
from trust.labels import DEFAULT, Label, Origin, Sensitivity
from trust.model import Labelled, Mark


class Labels:
    """See `trust.contract.LabelRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, path: bytes, content: bytes) -> Labelled | None:
        """See the contract."""
        statement = "SELECT path, content, origin, sensitivity, endorsed FROM labels WHERE path = ? AND content = ?"
        rows = self._database.rows(statement, (path, content))
        return _labelled(rows[0]) if rows else None

    def empty(self) -> bool:
        """See the contract."""
        return not self._database.rows("SELECT 1 FROM labels LIMIT 1")

    def of_content(self, content: bytes) -> Sequence[Labelled]:
        """See the contract."""
        statement = "SELECT path, content, origin, sensitivity, endorsed FROM labels WHERE content = ? ORDER BY path"
        return [_labelled(row) for row in self._database.rows(statement, (content,))]

    def page(self, after: tuple[bytes, bytes], limit: int) -> Sequence[Labelled]:
        """See the contract."""
        statement = (
            "SELECT path, content, origin, sensitivity, endorsed FROM labels WHERE (path, content) > (?, ?) ORDER BY path, content LIMIT ?"
        )
        return [_labelled(row) for row in self._database.rows(statement, (*after, limit))]

    def below(self, directory: bytes) -> Label | None:
        """See the contract."""
        statement = "SELECT max(origin), max(sensitivity) FROM labels"
        bounds = (directory + b"/", directory + b"0") if directory else ()  # every path below sorts between these two
        if directory:
            statement += " WHERE path >= ? AND path < ?"
        origin, sensitivity = self._database.rows(statement, bounds)[0]
        return None if origin is None else Label(Origin(origin), Sensitivity(sensitivity))

    def put(self, rows: Iterable[Labelled]) -> None:
        """See the contract."""
        statement = (
            "INSERT INTO labels VALUES(?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " origin = excluded.origin, sensitivity = excluded.sensitivity, endorsed = excluded.endorsed"
        )
        self._database.change_many(
            statement, [(row.path, row.content, row.label.origin, row.label.sensitivity, row.endorsed) for row in rows]
        )

    def put_commit(self, commit: str, label: Label) -> None:
        """See the contract."""
        self._database.change(
            "INSERT INTO label_commits VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET"
            " origin = max(origin, excluded.origin), sensitivity = max(sensitivity, excluded.sensitivity)",
            (commit, label.origin, label.sensitivity),
        )

    def commits(self) -> Mapping[str, Label]:
        """See the contract."""
        rows = self._database.rows('SELECT "commit", origin, sensitivity FROM label_commits')
        return {commit: Label(Origin(origin), Sensitivity(sensitivity)) for commit, origin, sensitivity in rows}

    def marks(self) -> Sequence[Mark]:
        """See the contract."""
        rows = self._database.rows("SELECT pattern, origin, sensitivity FROM marks ORDER BY pattern")
        return [Mark(pattern, Label(Origin(origin), Sensitivity(sensitivity))) for pattern, origin, sensitivity in rows]

    def put_mark(self, mark: Mark) -> None:
        """See the contract."""
        self._database.change(
            "INSERT INTO marks VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET origin = excluded.origin, sensitivity = excluded.sensitivity",
            (mark.pattern, mark.label.origin, mark.label.sensitivity),
        )

    def remove_mark(self, pattern: str) -> bool:
        """See the contract."""
        return self._database.change("DELETE FROM marks WHERE pattern = ?", (pattern,)) == 1

    def taint(self, run: str) -> Label:
        """See the contract."""
        rows = self._database.rows("SELECT origin, sensitivity FROM taints WHERE run = ?", (run,))
        return Label(Origin(rows[0][0]), Sensitivity(rows[0][1])) if rows else DEFAULT

    def raise_taint(self, run: str, taint: Label) -> None:
        """See the contract."""
        self._database.change(
            "INSERT INTO taints VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET"
            " origin = max(origin, excluded.origin), sensitivity = max(sensitivity, excluded.sensitivity)",
            (run, taint.origin, taint.sensitivity),
        )


def _labelled(row: tuple[Any, ...]) -> Labelled:
    path, content, origin, sensitivity, endorsed = row
    return Labelled(path, content, Label(Origin(origin), Sensitivity(sensitivity)), bool(endorsed))
