"""Gates as rows. One conditional UPDATE moves a gate; whoever changes a row first has decided."""
# ruff: noqa: S608 - what is put into statements are constants of this module; values are bound

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from trust.canonical import canonical
from trust.engines.sqlite.database import Database
from trust.errors import Taken, Unknown
from trust.model import Digest, Gate, GateId, GateState

_COLUMNS = "id, subject, digest, card, required_role, created, deadline, fallback, state, asked_by, answered_by, answered, comment"


class Gates:
    """See `trust.contract.GateRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, gate: Gate) -> None:
        """See the contract."""
        values = (
            *(gate.id, gate.subject, gate.digest, canonical(dict(gate.card)), gate.required_role, gate.created, gate.deadline),
            *(gate.fallback, gate.state.value, gate.asked_by, gate.answered_by, gate.answered, gate.comment),
        )
        try:
            self._database.change(f"INSERT INTO gates({_COLUMNS}) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        except apsw.ConstraintError as error:
            raise Taken(gate.id, "there is a gate of this id") from error

    def find(self, gate: GateId) -> Gate:
        """See the contract."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM gates WHERE id = ?", (gate,))
        if not rows:
            raise Unknown(gate, "no such gate")
        return _gate(rows[0])

    def all(self, state: GateState | None = None, subject: str | None = None) -> Sequence[Gate]:
        """See the contract."""
        conditions = [text for text, value in (("state = ?", state), ("subject = ?", subject)) if value is not None]
        values = [value for value in (state.value if state else None, subject) if value is not None]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return [_gate(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM gates {where} ORDER BY number", tuple(values))]

    def move(self, source: GateState, target: Gate, *, open_at: int | None = None, due_at: int | None = None) -> bool:
        """See the contract."""
        changed = self._database.change(
            """UPDATE gates SET state = ?, answered_by = ?, answered = ?, comment = ? WHERE id = ? AND digest = ? AND state = ?
            AND (?8 IS NULL OR deadline > ?8) AND (?9 IS NULL OR deadline <= ?9)""",
            (
                *(target.state.value, target.answered_by, target.answered, target.comment),
                *(target.id, target.digest, source.value, open_at, due_at),
            ),
        )
        return changed == 1


def _gate(row: tuple[Any, ...]) -> Gate:
    gate, subject, digest, card, role, created, deadline, fallback, state, asked_by, answered_by, answered, comment = row
    return Gate(
        id=GateId(gate),
        subject=subject,
        digest=Digest(digest),
        card=json.loads(card),
        required_role=role,
        created=created,
        deadline=deadline,
        fallback=fallback,
        state=GateState(state),
        asked_by=asked_by,
        answered_by=answered_by,
        answered=answered,
        comment=comment,
    )
