"""What a workspace spends of its lease's budgets, reserved in steps so that a read does not cost a transaction.

1. Nothing is spent that was not reserved: over all processes the sum never exceeds the budget.
2. A step is at most a sixteenth of what is left, so that one process does not starve the others.
3. What was reserved and not spent goes back on `settle`; a process that dies keeps its last step (it counts as spent).
4. Kinds without a budget are counted and reported on `settle`.
"""

from __future__ import annotations

import threading

from interfaces.faults import Fault, Kind
from trust.errors import BudgetSpent
from trust.model import BudgetKind, Lease
from trust.service import Trust

_STEP = {BudgetKind.READS: 256, BudgetKind.BYTES_READ: 4 << 20, BudgetKind.BYTES_WRITTEN: 4 << 20, BudgetKind.COMMITS: 1}


class Meter:
    """Charges one lease. Any thread may call."""

    def __init__(self, trust: Trust, lease: Lease | None) -> None:
        """Charge `lease`; None charges nobody (a principal's own access has no budget)."""
        self._trust = trust
        self._lease = lease
        self._reserved = dict.fromkeys(BudgetKind, 0)
        self._counted = dict.fromkeys(BudgetKind, 0)
        self._limited = frozenset(trust.left(lease.id)) if lease else frozenset[BudgetKind]()
        self._lock = threading.Lock()

    def spend(self, kind: BudgetKind, amount: int) -> None:
        """Spend `amount` of one kind. Raises `Kind.BUDGET`, and then nothing was spent."""
        if self._lease is None or amount == 0:
            return
        with self._lock:
            if kind not in self._limited:
                self._counted[kind] += amount
                return
            if self._reserved[kind] < amount:
                self._reserve(self._lease, kind, amount - self._reserved[kind])
            self._reserved[kind] -= amount

    def give_back(self, kind: BudgetKind, amount: int) -> None:
        """Return what was spent on something that did not happen."""
        with self._lock:
            if kind in self._limited:
                self._reserved[kind] += amount
            else:
                self._counted[kind] -= amount

    def left(self, kind: BudgetKind) -> int | None:
        """Return what is left of a kind, None when it has no budget."""
        if self._lease is None or kind not in self._limited:
            return None
        return self._trust.left(self._lease.id).get(kind, 0) + self._reserved[kind]

    def settle(self) -> None:
        """Give back what is reserved and report what was counted."""
        if self._lease is None:
            return
        with self._lock:
            spare = {kind: amount for kind, amount in self._reserved.items() if amount > 0}
            counted = {kind: amount for kind, amount in self._counted.items() if amount > 0}
            self._reserved = dict.fromkeys(BudgetKind, 0)
            self._counted = dict.fromkeys(BudgetKind, 0)
        if spare:
            self._trust.refund(self._lease.id, spare)
        if counted:
            self._trust.charge(self._lease.id, counted)

    def _reserve(self, lease: Lease, kind: BudgetKind, missing: int) -> None:
        left = self._trust.left(lease.id).get(kind, 0)
        step = max(missing, min(_STEP[kind], left // 16))
        for amount in (step, missing):
            try:
                self._trust.charge(lease.id, {kind: amount})
            except BudgetSpent:
                continue
            self._reserved[kind] += amount
            return
        raise Fault(
            Kind.BUDGET,
            f"lease {lease.id} has spent its budget of {kind.value.replace('_', ' ')}",
            hint="ask the owner for a lease with a larger budget, or propose what there is",
        )
