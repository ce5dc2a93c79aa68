"""The locks of one branch, as every worker sees them: kept in the notes of this door, changed by compare-and-set.

1. One document holds all locks of a branch, so that whether two locks go together is decided on one state of it.
2. A change that lost against another worker is thought over again with what is there now.
3. Locks that ended leave with the next change; the document leaves with its last lock.
"""

from __future__ import annotations

from collections.abc import Callable

from interfaces.faults import Fault, Kind
from interfaces.port import Notes
from interfaces.webdav.locks import Locks, decode_lock, encode_lock, live

MAX_LOCKS = 1000
"""How many locks a branch has at most."""

_ATTEMPTS = 64
_PREFIX = "locks/"


class Lockbook:
    """The locks of a branch."""

    def __init__(self, notes: Notes, branch: str, clock: Callable[[], float]) -> None:
        """Keep the locks of `branch` in `notes`; `clock` gives seconds since the epoch."""
        self._notes = notes
        self._key = _PREFIX + branch
        self._clock = clock

    def now(self) -> int:
        """Return the time, seconds since the epoch."""
        return int(self._clock())

    def read(self) -> Locks:
        """Return the locks that did not end."""
        _, document = self._notes.find(self._key)
        return live(map(decode_lock, document.get("locks", ())), self.now())

    def change(self, rule: Callable[[Locks], Locks]) -> Locks:
        """Replace the locks by what `rule` makes of them, and return that. Raises what it raises, `Kind.NO_SPACE`, `Kind.BUSY`.

        `rule` may be called several times; only what it returned last counts.
        """
        for _ in range(_ATTEMPTS):
            version, document = self._notes.find(self._key)
            stored = tuple(map(decode_lock, document.get("locks", ())))
            wanted = rule(live(stored, self.now()))
            if len(wanted) > MAX_LOCKS:
                raise Fault(Kind.NO_SPACE, f"a branch has at most {MAX_LOCKS} locks", hint="unlock what is no longer edited")
            if wanted == stored or self._store(wanted, version):
                return wanted
        raise Fault(Kind.BUSY, "the locks of this branch keep changing", hint="try again")

    def _store(self, locks: Locks, version: int) -> bool:
        if not locks:
            return self._notes.remove(self._key, version)
        return self._notes.put(self._key, {"locks": [encode_lock(lock) for lock in locks]}, version)
