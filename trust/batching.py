"""Several callers, one step: what arrives while a step runs is carried out together by the next.

1. The first caller to arrive while nothing runs carries out the step for everyone who is waiting; the others sleep. No thread is made.
2. Each caller gets its own result, or the exception that ended its step; a failed step fails all of its callers and no others.
3. A caller alone pays two lock operations.
4. Any thread, but never one that holds what the step needs: it would wait for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class _Entry(Generic[_Item, _Result]):
    """One caller: its item, then its result or its failure. `turn` is held until it is done or has to lead."""

    __slots__ = ("failure", "item", "result", "turn")

    def __init__(self, item: _Item) -> None:
        self.item = item
        self.result: list[_Result] = []
        self.failure: BaseException | None = None
        self.turn = threading.Lock()
        self.turn.acquire()

    def done(self) -> bool:
        return bool(self.result) or self.failure is not None

    def outcome(self) -> _Result:
        if self.failure is not None:
            raise self.failure
        return self.result[0]


class Batcher(Generic[_Item, _Result]):
    """Carries out items in groups. `carry_out` takes the items of a group and returns one result for each, in order."""

    def __init__(self, carry_out: Callable[[list[_Item]], list[_Result]]) -> None:
        self._carry_out = carry_out
        self._lock = threading.Lock()
        self._waiting: list[_Entry[_Item, _Result]] = []
        self._running = False

    def submit(self, item: _Item) -> _Result:
        """Return the result for an item once its group was carried out. Raises what `carry_out` raised."""
        entry: _Entry[_Item, _Result] = _Entry(item)
        with self._lock:
            self._waiting.append(entry)
            leads = not self._running
            self._running = True
        if not leads:
            entry.turn.acquire()
        if not entry.done():
            self._lead()
        return entry.outcome()

    def _lead(self) -> None:
        with self._lock:
            group, self._waiting = self._waiting, []
        try:
            for entry, result in zip(group, self._carry_out([entry.item for entry in group]), strict=True):
                entry.result.append(result)
        except BaseException as failure:
            for entry in group:
                entry.failure = failure
            raise
        finally:
            self._hand_over(group)

    def _hand_over(self, group: list[_Entry[_Item, _Result]]) -> None:
        with self._lock:
            following = self._waiting[0] if self._waiting else None
            self._running = following is not None
        for entry in group:
            entry.turn.release()
        if following is not None:
            following.turn.release()
