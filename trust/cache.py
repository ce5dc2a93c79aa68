"""Decisions that need not be made again.

1. One entry serves a whole directory when every rule and the lease give all of its names the same answer, and that is yes; else it is one
   entry a path. A denial names its path and so is kept for that path only.
2. An entry counts for one epoch: any change to leases, policy, gates, principals or tokens, in any process, ends all of them.
3. An entry ends when the clock alone could change the answer.
4. Budgets change with every act: ask without `needs`, and charge; a denial for a budget is never kept.
5. Bounded: at `limit` entries all are dropped, which costs one decision each.
6. Any thread may call: entries are immutable and a lost race costs a decision.
"""

from __future__ import annotations

from dataclasses import dataclass

from trust.model import Action, Decision, Denial, Effect, Epoch, Facts
from trust.policy.patterns import uniform_below
from trust.policy.rules import CompiledPolicy

FOREVER = 1 << 62
"""When an answer ends that no clock ends."""

_Key = tuple[str, Action, bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class _Entry:
    decision: Decision
    until: int


class DecisionCache:
    """Keeps decisions by holder (a lease id, or a principal's name), action and directory."""

    def __init__(self, limit: int = 65536) -> None:
        self._limit = limit
        self._epoch: Epoch | None = None
        self._entries: dict[_Key, _Entry] = {}

    def find(self, epoch: Epoch, holder: str, action: Action, directory: bytes, name: bytes, now: int) -> Decision | None:
        """Return the decision about a name in a directory, when one is kept that still counts."""
        if epoch != self._epoch:
            return None
        entries = self._entries
        entry = entries.get((holder, action, directory, None)) or entries.get((holder, action, directory, name))
        return entry.decision if entry is not None and now < entry.until else None

    def keep(
        self, epoch: Epoch, holder: str, directory: bytes, name: bytes, policy: CompiledPolicy, facts: Facts, decision: Decision
    ) -> None:
        """Keep a decision that was made for `facts` about a name in a directory."""
        if decision.denial is Denial.BUDGET or facts.change is not None or facts.request is not None or facts.gate is not None:
            return
        if epoch != self._epoch or len(self._entries) >= self._limit:
            self._entries, self._epoch = {}, epoch
        shared = decision.effect is Effect.ALLOW and is_uniform(policy, facts, directory)
        key = (holder, facts.action, directory, None if shared else name)
        self._entries[key] = _Entry(decision, valid_until(facts))


def is_uniform(policy: CompiledPolicy, facts: Facts, directory: bytes) -> bool:
    """Tell whether every name directly in the directory gets the answer that these facts get."""
    in_lease = facts.lease is None or uniform_below(facts.lease.paths, directory)
    return in_lease and policy.uniform_below(facts.action, directory)


def valid_until(facts: Facts) -> int:
    """Return the first moment at which the clock alone could change the decision."""
    if facts.lease is None:
        return FOREVER
    times = (facts.lease.not_before, facts.lease.expires)
    return min((time for time in times if time > facts.now), default=FOREVER)
