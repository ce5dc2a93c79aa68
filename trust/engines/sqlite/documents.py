"""Adopted policies, and the composition's documents, as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trust.canonical import canonical
from trust.engines.sqlite.database import Database
from trust.errors import Unknown
from trust.model import Document

_LAST = "\U0010ffff"
"""Comes after every character of an id."""


class Policies:
    """See `trust.contract.PolicyRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, digest: str, text: str, source: str, now: int) -> None:
        """See the contract."""
        self._database.change("INSERT INTO policies(digest, text, source, adopted) VALUES(?, ?, ?, ?)", (digest, text, source, now))

    def last(self) -> tuple[str, str, str]:
        """See the contract."""
        rows = self._database.rows("SELECT text, source, digest FROM policies ORDER BY number DESC LIMIT 1")
        if not rows:
            raise Unknown("policy", "none was adopted yet")
        text, source, digest = rows[0]
        return text, source, digest

    def last_hash(self) -> str:
        """See the contract."""
        rows = self._database.rows("SELECT digest FROM policies ORDER BY number DESC LIMIT 1")
        return str(rows[0][0]) if rows else ""

    def find(self, digest: str) -> tuple[str, str]:
        """See the contract."""
        rows = self._database.rows("SELECT text, source FROM policies WHERE digest = ? ORDER BY number DESC LIMIT 1", (digest,))
        if not rows:
            raise Unknown(digest, "no such policy was adopted")
        text, source = rows[0]
        return text, source

    def all(self) -> Sequence[tuple[str, str]]:
        """See the contract."""
        return [(digest, text) for digest, text in self._database.rows("SELECT DISTINCT digest, text FROM policies ORDER BY digest")]


class Documents:
    """See `trust.contract.DocumentRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, kind: str, id: str, body: Mapping[str, Any], expected: int) -> bool:
        """See the contract."""
        text = canonical(dict(body))
        if expected == 0:
            return self._database.change("INSERT INTO documents VALUES(?, ?, 1, ?) ON CONFLICT DO NOTHING", (kind, id, text)) == 1
        statement = "UPDATE documents SET version = version + 1, body = ? WHERE kind = ? AND id = ? AND version = ?"
        return self._database.change(statement, (text, kind, id, expected)) == 1

    def find(self, kind: str, id: str) -> Document:
        """See the contract."""
        rows = self._database.rows("SELECT kind, id, version, body FROM documents WHERE kind = ? AND id = ?", (kind, id))
        if not rows:
            raise Unknown(id, f"no such {kind}")
        return _document(rows[0])

    def all(self, kind: str) -> Sequence[Document]:
        """See the contract."""
        rows = self._database.rows("SELECT kind, id, version, body FROM documents WHERE kind = ? ORDER BY id", (kind,))
        return [_document(row) for row in rows]

    def remove(self, kind: str, id: str, expected: int) -> bool:
        """See the contract."""
        return self._database.change("DELETE FROM documents WHERE kind = ? AND id = ? AND version = ?", (kind, id, expected)) == 1

    def keys(self, kind: str, prefix: str) -> Sequence[str]:
        """See the contract."""
        statement = "SELECT id FROM documents WHERE kind = ? AND id >= ? AND id < ? ORDER BY id"
        return [row[0] for row in self._database.rows(statement, (kind, prefix, prefix + _LAST))]


def _document(row: tuple[Any, ...]) -> Document:
    kind, found, version, body = row
    return Document(kind, found, version, json.loads(body))
