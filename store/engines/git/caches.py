"""A map that keeps what was used lately, within a weight.

1. Two halves: what was read since the last turn, and the turn before. A hit in the older half moves to the younger one; when the
   younger half is full it becomes the older one and the former older half is forgotten. That costs two lookups and no lists.
2. Safe from several threads without a lock: each step is one operation on a dictionary, and a lost race costs a miss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class RecentMap(Generic[Key, Value]):
    """A bounded map; a value that is not found has to be made again."""

    def __init__(self, limit: int, weigh: Callable[[Value], int] | None = None) -> None:
        """Keep at most `limit` of weight, by `weigh` or one for each value."""
        self._half = max(limit // 2, 1)
        self._weigh = weigh
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self._weight = 0

    def get(self, key: Key) -> Value | None:
        """Return the value, or None."""
        value = self._young.get(key)
        if value is None and (value := self._old.pop(key, None)) is not None:
            self.put(key, value)
        return value

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, at the expense of what was not used for longest."""
        self._young[key] = value
        self._weight += 1 if self._weigh is None else self._weigh(value)
        if self._weight > self._half:
            self._old, self._young, self._weight = self._young, {}, 0

    def drop(self, key: Key) -> None:
        """Forget a value."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
