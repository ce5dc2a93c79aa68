"""Small contents that were placed and are in no commit yet: rows, so that a file that is put whole costs no file and one sync.

1. A draft is written with the row of the node that has it. The node looks like one restored from a commit: a blob below, no upper file.
2. Drafts belong to a branch. A commit of it makes objects of those it holds and drops the others, which nothing names any more; what no
   commit can hold keeps its draft.
3. What is written to in place becomes an upper file first, like every blob below.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from store.contract import Content
from store.engines.git.large import POINTER_SIZES, parse_pointer
from store.engines.git.nodes import PARKED, NodeRow

LARGEST = 64 << 10
"""The most bytes in a draft: beyond, writing them twice costs more than a file."""

PUT = "INSERT OR IGNORE INTO draft (branch, oid, data) VALUES (?, ?, ?)"
"""Keeps a content for a branch."""


def read_beginning(content: Content) -> bytes:
    """Return all of a content that is small enough for a draft, else more than `LARGEST` bytes of it."""
    pieces, size = [], 0
    while size <= LARGEST and (piece := content.read(LARGEST + 1 - size)):
        pieces.append(piece)
        size += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def fits(data: bytes) -> bool:
    """Tell whether a content can be a draft: it is small, and nobody would take it for a pointer to a large one."""
    return len(data) <= LARGEST and not (len(data) in POINTER_SIZES and parse_pointer(data))


def drop_drafts(connection: apsw.Connection, branch: int, rows: Iterable[NodeRow]) -> None:
    """Drop the drafts of a branch that was committed, within the transaction, but for those of the parked among its rows."""
    kept = {row.lower for row in rows if row.dirty == PARKED and row.upper is None and row.lower is not None}
    if not kept:
        connection.execute("DELETE FROM draft WHERE branch = ?", (branch,))
        return
    found = connection.execute("SELECT id, oid FROM draft WHERE branch = ?", (branch,)).fetchall()
    connection.executemany("DELETE FROM draft WHERE id = ?", [(number,) for number, oid in found if oid not in kept])
