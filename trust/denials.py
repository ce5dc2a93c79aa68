"""Denials, counted: a program that is refused a million times leaves a few records and a number.

1. One entry for each lease, action, path and rule within a minute; the rest is its count. Nothing is dropped from the counts.
2. Bounded: beyond `limit` entries, what comes is counted under `OVERFLOW` for its lease and rule, beyond twice that under one entry.
3. Pure and unsynchronised: the owner calls from one thread or holds a lock, passes the time, and records what `take` returns.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = 60
"""Seconds that are counted together."""
OVERFLOW = "(more)"
"""Stands for the paths, or leases, that are no longer told apart."""


@dataclass(frozen=True, slots=True)
class Denied:
    """What was refused `count` times between `first` and `last`."""

    lease: str
    action: str
    path: str
    rule: str
    first: int
    last: int
    count: int


class Denials:
    """Counts denials until they are taken."""

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._counts: dict[tuple[str, str, str, str], list[int]] = {}

    def add(self, lease: str, action: str, path: str, rule: str, now: int) -> bool:
        """Count one denial and tell whether it is the first of its kind in this window."""
        key = self._key(lease, action, path, rule)
        counted = self._counts.get(key)
        if counted is None:
            self._counts[key] = [now, now, 1]
            return True
        counted[1] = max(counted[1], now)
        counted[2] += 1
        return False

    def _key(self, lease: str, action: str, path: str, rule: str) -> tuple[str, str, str, str]:
        key = (lease, action, path, rule)
        if key in self._counts or len(self._counts) < self._limit:
            return key
        if len(self._counts) < 2 * self._limit:
            return (lease, action, OVERFLOW, rule)
        return (OVERFLOW, OVERFLOW, OVERFLOW, OVERFLOW)

    def due(self, now: int) -> bool:
        """Tell whether an entry is older than the window."""
        return any(now - first >= WINDOW for first, _, _ in self._counts.values())

    def take(self, now: int | None = None) -> tuple[Denied, ...]:
        """Return and forget the entries whose window is over at `now`, or (None) all of them."""
        ready = [key for key, (first, _, _) in self._counts.items() if now is None or now - first >= WINDOW]
        return tuple(Denied(*key, *self._counts.pop(key)) for key in ready)
