"""Gates of a database that an earlier release made."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from trust import Trust
from trust.engines.sqlite.engine import FILE_NAME
from trust.engines.sqlite.schema import STEPS
from trust.model import GateId, GatePhase, GateState

INSERT = """INSERT INTO gates(id, subject, digest, card, required_role, created, deadline, fallback, state, asked_by, answered_by, answered,
comment) VALUES(?, 'proposal:p1', 'd', '{"what":"merge"}', 'owner', 10, 100, 'reject', ?, 'coder', 'ana', 50, 'fine')"""


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_asked_before_the_upgrade_is_still_there_and_where_it_was(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "trust"
    folder.mkdir()
    before = apsw.Connection(str(folder / FILE_NAME))
    for step in STEPS[:version]:
        before.execute(step)
    before.pragma("user_version", version)
    for state in ("pending", "approved", "rejected", "expired", "withdrawn", "consumed"):
        before.execute(INSERT, (state, state))
    before.close()
    trust = Trust.open(folder)
    places = {gate.id: (gate.state, gate.phase, gate.usable_until) for gate in trust.gates()}
    assert places == {
        GateId("pending"): (GateState.PENDING, GatePhase.PENDING, None),
        GateId("approved"): (GateState.APPROVED, GatePhase.DECIDED, 50 + 86400),
        GateId("rejected"): (GateState.REJECTED, GatePhase.DECIDED, None),
        GateId("expired"): (GateState.EXPIRED, GatePhase.DECIDED, None),
        GateId("withdrawn"): (GateState.WITHDRAWN, GatePhase.DECIDED, None),
        GateId("consumed"): (GateState.APPROVED, GatePhase.CLOSED, None),
    }
    trust.close()
