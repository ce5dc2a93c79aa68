"""What people are to be told, kept until they were told: put in with what it is about, taken out once it was sent.

1. An entry is made in the transaction of what it tells, so that neither is there without the other.
2. One entry for an event of a gate, however often it is put in.
3. An entry holds ids, names that owners gave, times and counts: never what an agent wrote, never a path, content or secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasd.wiring import Appliance
from trust.errors import Taken
from trust.gates import kind_of
from trust.model import Bypass, Document, Gate

KIND = "notice"


def enqueue(appliance: Appliance, event: str, gate: Gate, now: int) -> None:
    """Put an event of a gate (``asked``, ``expired``) into the outbox; without targets nothing is kept."""
    files, deletes = (gate.card.get(name) for name in ("files", "deletes"))
    body = {
        "gate": gate.id,
        "kind": kind_of(gate.subject),
        "rule": gate.rule,
        "run": gate.run,
        "asked_by": gate.asked_by,
        "required_role": gate.required_role,
        "approvals": gate.approvals,
        "deadline": gate.deadline,
        "fallback": gate.fallback,
        "files": files if isinstance(files, int) else None,
        "deletes": deletes if isinstance(deletes, int) else None,
    }
    _put(appliance, event, gate.id, body, now)


def enqueue_bypass(appliance: Appliance, bypass: Bypass, now: int) -> None:
    """Put the opening of a bypass into the outbox."""
    body = {"gate": bypass.id, "rule": bypass.rule, "by": bypass.by, "expires": bypass.expires, "required_role": ""}
    _put(appliance, "bypassed", bypass.id, body, now)


def _put(appliance: Appliance, event: str, id: str, body: Mapping[str, Any], now: int) -> None:
    if not appliance.settings.notify:
        return
    try:
        appliance.trust.put_document(KIND, f"{id}-{event}", {"event": event, "at": now, **body, "sent": {}}, 0)
    except Taken:
        return  # it is in already


def waiting(appliance: Appliance) -> list[Document]:
    """Return what was not told to everybody yet, oldest first."""
    return sorted(appliance.trust.documents(KIND), key=lambda entry: (entry.body["at"], entry.id))
