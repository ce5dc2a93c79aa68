"""Branches and snapshots: names in the database that lead to commits.

1. Making a branch is one row, whatever its tree holds. A branch moves only from the head the caller names.
2. No branch lies below another, because one name would have to be a file and a directory for git.
3. Every change is on stable storage when its method returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import apsw

from store.engines.git.database import Database, Row
from store.errors import Exists, InvalidName, Moved, NotFound
from store.model import Branch, CommitId, Version
from store.names import explain_branch_name, names_above

_FIND = "SELECT id, name, head, base, created, protected FROM branch WHERE name = ?"
_BELOW = "SELECT id, name, head, base, created, protected FROM branch WHERE name >= ? AND name < ? ORDER BY name"
_INSERT = "INSERT INTO branch (name, head, base, tree, created, protected, inherited_ns) VALUES (?, ?, ?, ?, ?, ?, ?)"
_DIRTY = "SELECT name, version FROM branch WHERE dirty ORDER BY name"
_IS_DIRTY = "SELECT 1 FROM branch WHERE id = ? AND dirty"
_FORGET = (
    "DELETE FROM name WHERE branch = ?",
    "DELETE FROM node WHERE branch = ?",
    "DELETE FROM staged WHERE branch = ?",
    "DELETE FROM draft WHERE branch = ?",
    "DELETE FROM branch WHERE id = ?",
)
_NANOSECONDS = 1_000_000_000


class BranchRow(NamedTuple):
    """One branch as its row has it."""

    id: int
    name: str
    head: bytes
    base: bytes
    created: int
    protected: int

    def as_branch(self) -> Branch:
        """Return the branch in the store's words."""
        return Branch(self.name, CommitId(self.head.hex()), CommitId(self.base.hex()), self.created, bool(self.protected))


class Branches:
    """The names of one store."""

    def __init__(self, database: Database) -> None:
        """Keep them in `database`."""
        self._database = database

    def find(self, name: str) -> BranchRow:
        """Return a branch. Raises `NotFound`."""
        row = self._database.select_one(_FIND, (name,))
        if row is None:
            raise NotFound(name, "no such branch")
        return BranchRow(*row)

    def list(self, prefix: str) -> Sequence[BranchRow]:
        """Return the branches whose name starts with `prefix`, ordered by name."""
        return [BranchRow(*row) for row in self._database.select(_BELOW, (prefix, prefix + "\U0010ffff"))]

    def create(self, connection: apsw.Connection, row: BranchRow, tree: bytes, when: int) -> None:
        """Add a branch within a transaction; `when` is the time of its head in seconds. Raises `Exists`."""
        check_name(row.name)
        taken = connection.execute(_FIND, (row.name,)).fetchone() is not None
        if taken or any(connection.execute(_FIND, (above,)).fetchone() for above in names_above(row.name)):
            raise Exists(row.name, "the name, or one above it, is a branch")
        if connection.execute(_BELOW, (f"{row.name}/", f"{row.name}0")).fetchone():
            raise Exists(row.name, "branches lie below the name")
        connection.execute(_INSERT, (row.name, row.head, row.base, tree, row.created, row.protected, when * _NANOSECONDS))

    def delete(self, name: str, expected: bytes) -> int:
        """Remove a branch and the rows of its working layer, and return its number. Raises `NotFound`, `Moved`."""
        with self._database.transaction() as connection:
            row: Row | None = connection.execute(_FIND, (name,)).fetchone()
            if row is None:
                raise NotFound(name, "no such branch")
            branch = BranchRow(*row)
            if branch.head != expected:
                raise Moved(name, f"the branch is at {branch.head.hex()}")
            for statement in _FORGET:
                connection.execute(statement, (branch.id,))
        self._database.flush()
        return branch.id

    def dirty(self) -> Mapping[str, Version]:
        """Return the branches with uncommitted changes and the version of each working tree."""
        return {name: Version(version) for name, version in self._database.select(_DIRTY)}

    def is_dirty(self, branch: int) -> bool:
        """Tell whether a commit of the branch's working layer would have anything to look at."""
        return self._database.select_one(_IS_DIRTY, (branch,)) is not None

    def create_snapshot(self, name: str, target: bytes, now: int) -> None:
        """Give a commit a name that never moves. Raises `InvalidName`, `Exists`."""
        check_name(name)
        with self._database.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO snapshot VALUES (?, ?, ?)", (name, target, now))
            if connection.changes() == 0:
                raise Exists(name, "the name is a snapshot's")
        self._database.flush()

    def snapshots(self) -> Sequence[BranchRow]:
        """Return the snapshots as branches that never move, ordered by name."""
        rows = self._database.select("SELECT name, target, created FROM snapshot ORDER BY name")
        return [BranchRow(0, name, target, target, created, 1) for name, target, created in rows]

    def find_snapshot(self, name: str) -> bytes | None:
        """Return the commit of a snapshot, or None."""
        row = self._database.select_one("SELECT target FROM snapshot WHERE name = ?", (name,))
        return None if row is None else row[0]


def check_name(name: str) -> None:
    """Raise `InvalidName` for what no branch can be called."""
    why = explain_branch_name(name)
    if why is not None:
        raise InvalidName(name, why)
