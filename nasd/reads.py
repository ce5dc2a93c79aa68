"""The read manifest of a workspace: what was read, of which content, in which ranges, when; coalesced, bounded, written in batches.

1. An entry is one path with one content. Ranges that touch become one; of many only what spans them is kept, which says more, never less.
2. An entry without ranges was opened and nothing was asked of it here: the kernel answers from its pages what it has. It counts as all.
3. A batch names at most `LIMIT` entries and counts the rest, so that a `grep` over a million files costs one bounded record.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from nasd.paths import render_path

LIMIT = 1000
RANGES = 16
"""The most ranges of one entry."""

_Key = tuple[bytes, bytes]


@dataclass(slots=True)
class _Entry:
    times: int
    first: int
    last: int
    ranges: list[tuple[int, int]] = field(default_factory=list)


class Reading:
    """One opening of a file, for whoever reads through it."""

    __slots__ = ("_key", "_reads")

    def __init__(self, reads: Reads, key: _Key) -> None:
        self._reads = reads
        self._key = key

    def cover(self, start: int, length: int, now: int) -> None:
        """Note that bytes were read."""
        if length > 0:
            self._reads.cover(self._key, start, start + length, now)


class Reads:
    """Accumulates reads. Any thread may call."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[_Key, _Entry] = {}
        self._beyond = 0
        self._lock = threading.Lock()

    def begin(self, path: bytes, content: bytes, now: int) -> Reading:
        """Note one read of a content at a path, at a time in seconds; its ranges follow through what this returns."""
        key = (path, content)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                entry.times, entry.last = entry.times + 1, now
            elif len(self._entries) < LIMIT:
                self._entries[key] = _Entry(1, now, now)
            else:
                self._beyond += 1
        return Reading(self, key)

    def cover(self, key: _Key, start: int, end: int, now: int) -> None:
        """Note that bytes from `start` up to `end` of an entry were read; one that a batch took along already begins again."""
        known = self._entries.get(key)
        if known is not None and known.last == now and known.ranges and known.ranges[-1][0] <= start and end <= known.ranges[-1][1]:
            return  # nearly every repeated read says nothing more
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                if len(self._entries) >= LIMIT:
                    return
                entry = self._entries[key] = _Entry(0, now, now)
            entry.last = now
            entry.ranges = add_range(entry.ranges, start, end)

    def take(self) -> dict[str, Any] | None:
        """Return what was read since the last call as the body of a record, None when nothing was."""
        with self._lock:
            if not self._entries and not self._beyond:
                return None
            entries, beyond = self._entries, self._beyond
            self._entries, self._beyond = {}, 0
        return {"reads": [_view(*key, entry) for key, entry in sorted(entries.items())], "beyond": beyond}


def _view(path: bytes, content: bytes, entry: _Entry) -> dict[str, Any]:
    shown: dict[str, Any] = {"path": render_path(path), "times": entry.times, "first": entry.first, "last": entry.last}
    if content:
        shown["content"] = content.decode("ascii")
    if entry.ranges:
        shown["ranges"] = [list(each) for each in entry.ranges]
    return shown


def add_range(ranges: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return ordered ranges [start, end) with one more; those that touch are joined, and beyond `RANGES` all are one."""
    if ranges and ranges[-1][0] <= start <= ranges[-1][1]:  # nearly every read goes on where the last one ended
        return [*ranges[:-1], (ranges[-1][0], max(ranges[-1][1], end))]
    joined: list[tuple[int, int]] = []
    for low, high in sorted([*ranges, (start, end)]):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined if len(joined) <= RANGES else [(joined[0][0], joined[-1][1])]
