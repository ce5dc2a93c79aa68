"""That a credential counts where it is shown and for who shows it, and the record of where it did not.

1. A genuine lease at a door that is not its own, or without the key it is bound to, is somebody's mistake or theft: the first such refusal
   of a minute is recorded at once, the others as a count.
2. Any thread may call.
"""

from __future__ import annotations

import threading
from collections.abc import Set
from dataclasses import asdict

from trust.denials import Denials
from trust.errors import HolderUnproven, WrongDoor
from trust.leases import require_presented
from trust.model import Identity
from trust.service import Trust


class Presence:
    """Lets credentials count, or refuses them and records it."""

    def __init__(self, trust: Trust) -> None:
        """Record in `trust`."""
        self._trust = trust
        self._denials = Denials()
        self._lock = threading.Lock()

    def demand(self, identity: Identity, door: str, proofs: Set[str], now: int) -> None:
        """Return when who shows a credential at a door may use it there. Raises `WrongDoor`, `HolderUnproven`."""
        try:
            require_presented(identity.scope, door, proofs)
        except (WrongDoor, HolderUnproven) as error:
            self._count(identity, door, "doors" if isinstance(error, WrongDoor) else "holder", now)
            raise

    def flush(self, now: int | None = None) -> None:
        """Record what was refused again in the minutes that are over at `now` (None: in all of them)."""
        with self._lock:
            taken = self._denials.take(now)
        for denied in taken:
            if denied.count > 1:
                self._trust.state("denied", None, asdict(denied) | {"count": denied.count - 1}, denied.last)

    def _count(self, identity: Identity, door: str, rule: str, now: int) -> None:
        subject = identity.lease.id if identity.lease else identity.principal.name
        with self._lock:
            first = self._denials.add(subject, "enter", door, rule, now)
        if first:
            body = {"lease": subject, "action": "enter", "path": door, "rule": rule, "count": 1}
            self._trust.state("denied", identity, body, now)
