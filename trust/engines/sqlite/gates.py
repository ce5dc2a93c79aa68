"""Gates as rows. One conditional UPDATE replaces a gate; whoever changes a row first has decided."""
# ruff: noqa: S608 - what is put into statements are constants of this module; values are bound

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import apsw

from trust.canonical import canonical
from trust.engines.sqlite.database import Database
from trust.errors import Taken, Unknown
from trust.model import Answer, Bypass, Digest, Gate, GateId, GatePhase, GateState

_FIXED = (
    *("id", "subject", "digest", "card", "required_role", "created", "deadline", "fallback", "asked_by", "act", "alike", "run", "rule"),
    *("approvals", "excluded", "use_within", "standing"),
)
_MOVING = (
    *("state", "phase", "answers", "answered_by", "answered", "comment", "usable_until", "successor", "acknowledged", "closed"),
    "outcome",
)
_COLUMNS = ", ".join((*_FIXED, *_MOVING))
_MARKS = ", ".join("?" * (len(_FIXED) + len(_MOVING)))
_CHANGES = ", ".join(f"{name} = ?" for name in _MOVING)
_BYPASS = "id, rule, policy, by, reason, created, expires, ended"


class Gates:
    """See `trust.contract.GateRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, gate: Gate) -> None:
        """See the contract."""
        fixed = (
            *(gate.id, gate.subject, gate.digest, canonical(dict(gate.card)), gate.required_role, gate.created, gate.deadline),
            *(gate.fallback, gate.asked_by, gate.act, gate.alike, gate.run, gate.rule),
            *(gate.approvals, canonical(list(gate.excluded)), gate.use_within, int(gate.standing)),
        )
        try:
            self._database.change(f"INSERT INTO gates({_COLUMNS}) VALUES({_MARKS})", (*fixed, *_moving(gate)))
        except apsw.ConstraintError as error:
            raise Taken(gate.id, "there is a gate of this id") from error

    def find(self, gate: GateId) -> Gate:
        """See the contract."""
        found = self._select("WHERE id = ?", gate)
        if not found:
            raise Unknown(gate, "no such gate")
        return found[0]

    def all(
        self, state: GateState | None = None, subject: str | None = None, *, run: str | None = None, alike: Digest | None = None
    ) -> Sequence[Gate]:
        """See the contract."""
        wanted = {"state": state.value if state else None, "subject": subject, "run": run, "alike": alike}
        given = {name: value for name, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(f'{name} = ?' for name in given)}" if given else ""
        return self._select(where, *given.values())

    def asking(self, act: Digest) -> Sequence[Gate]:
        """See the contract."""
        return self._select("WHERE act = ?", act)

    def unclosed(self) -> Sequence[Gate]:
        """See the contract."""
        return self._select("WHERE phase <> 'closed'")

    def due(self, now: int) -> Sequence[Gate]:
        """See the contract."""
        return self._select(
            "WHERE phase <> 'closed' AND (state = 'pending' AND deadline <= ?1"
            " OR state = 'approved' AND phase = 'decided' AND usable_until <= ?1)",
            now,
        )

    def replace(self, before: Gate, after: Gate) -> bool:
        """See the contract."""
        changed = self._database.change(
            f"UPDATE gates SET {_CHANGES} WHERE id = ? AND digest = ? AND state = ? AND phase = ? AND answers = ?",
            (*_moving(after), before.id, before.digest, before.state.value, before.phase.value, _answers(before)),
        )
        return changed == 1

    def add_bypass(self, bypass: Bypass) -> None:
        """See the contract."""
        try:
            self._database.change(f"INSERT INTO bypasses({_BYPASS}) VALUES(?, ?, ?, ?, ?, ?, ?, ?)", astuple(bypass))
        except apsw.ConstraintError as error:
            raise Taken(bypass.id, "there is a bypass of this id") from error

    def find_bypass(self, bypass: GateId) -> Bypass:
        """See the contract."""
        rows = self._database.rows(f"SELECT {_BYPASS} FROM bypasses WHERE id = ?", (bypass,))
        if not rows:
            raise Unknown(bypass, "no such bypass")
        return Bypass(*rows[0])

    def bypasses(self, since: int | None = None) -> Sequence[Bypass]:
        """See the contract."""
        where, values = ("", ()) if since is None else ("WHERE expires > ?1 AND (ended IS NULL OR ended > ?1)", (since,))
        return [Bypass(*row) for row in self._database.rows(f"SELECT {_BYPASS} FROM bypasses {where} ORDER BY number", values)]

    def end_bypass(self, bypass: GateId, now: int) -> bool:
        """See the contract."""
        return self._database.change("UPDATE bypasses SET ended = ? WHERE id = ? AND ended IS NULL", (now, bypass)) == 1

    def _select(self, where: str, *values: Any) -> list[Gate]:
        return [_gate(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM gates {where} ORDER BY number", values)]


def _answers(gate: Gate) -> str:
    return canonical([list(astuple(answer)) for answer in gate.answers])


def _moving(gate: Gate) -> tuple[Any, ...]:
    return (
        *(gate.state.value, gate.phase.value, _answers(gate), gate.answered_by, gate.answered, gate.comment),
        *(gate.usable_until, gate.successor, gate.acknowledged, gate.closed, gate.outcome),
    )


def _gate(row: tuple[Any, ...]) -> Gate:
    values = dict(zip((*_FIXED, *_MOVING), row, strict=True))
    return Gate(
        **values
        | {
            "card": json.loads(values["card"]),
            "state": GateState(values["state"]),
            "phase": GatePhase(values["phase"]),
            "excluded": tuple(json.loads(values["excluded"])),
            "standing": bool(values["standing"]),
            "answers": tuple(Answer(*answer) for answer in json.loads(values["answers"])),
        }
    )
