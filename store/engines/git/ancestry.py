"""Who descends from whom: walks over the graph of commits.

1. Pure: commits are asked from a function that gives parents and a time.
2. Times order a walk, they are never trusted: with clocks that went backwards a walk takes longer and the answer is the same.
3. A walk for common ancestors ends as soon as nothing in front of it can be one, so it costs what the two sides differ by.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

_ONE, _OTHER, _STALE = 1, 2, 4
_BOTH = _ONE | _OTHER


class Generation(NamedTuple):
    """What a walk needs of a commit: its parents, and its time in seconds."""

    parents: tuple[bytes, ...]
    when: int


ReadCommit = Callable[[bytes], Generation]


def find_merge_bases(read: ReadCommit, one: bytes, other: bytes) -> list[bytes]:
    """Return the common ancestors that no other common ancestor descends from, newest first."""
    if one == other:
        return [one]
    candidates = _paint(read, one, other)
    if len(candidates) > 1:
        candidates = [base for base in candidates if not any(base != each and _descends(read, each, base) for each in candidates)]
    return sorted(candidates, key=lambda oid: (-read(oid).when, oid))


def is_ancestor(read: ReadCommit, ancestor: bytes, of: bytes) -> bool:
    """Tell whether a commit is another's ancestor or that commit itself."""
    return find_merge_bases(read, ancestor, of) == [ancestor]


def reach(read: ReadCommit, start: bytes) -> set[bytes]:
    """Return a commit and all its ancestors."""
    found, pending = {start}, [start]
    while pending:
        for parent in read(pending.pop()).parents:
            if parent not in found:
                found.add(parent)
                pending.append(parent)
    return found


def walk(read: ReadCommit, start: bytes) -> Iterator[bytes]:
    """Yield a commit and all its ancestors, newest first, every commit before its parents."""
    children: dict[bytes, int] = {start: 0}
    for oid in reach(read, start):
        for parent in read(oid).parents:
            children[parent] = children.get(parent, 0) + 1
    ready = [(-read(start).when, start)]
    while ready:
        _, oid = heapq.heappop(ready)
        yield oid
        for parent in read(oid).parents:
            children[parent] -= 1
            if children[parent] == 0:
                heapq.heappush(ready, (-read(parent).when, parent))


def _paint(read: ReadCommit, one: bytes, other: bytes) -> list[bytes]:
    """Return every commit that both sides reach without passing another such commit, as far as times tell."""
    marks = {one: _ONE, other: _OTHER}
    front = [(-read(oid).when, oid) for oid in (one, other)]
    heapq.heapify(front)
    found: dict[bytes, None] = {}
    while any(not marks[oid] & _STALE for _, oid in front):
        _, oid = heapq.heappop(front)
        mark = marks[oid]
        if mark & _BOTH == _BOTH:
            if not mark & _STALE:
                found[oid] = None
            mark |= _STALE
        for parent in read(oid).parents:
            before = marks.get(parent, 0)
            if before | mark != before:
                marks[parent] = before | mark
                heapq.heappush(front, (-read(parent).when, parent))
    return [oid for oid in found if not marks[oid] & _STALE]


def _descends(read: ReadCommit, commit: bytes, ancestor: bytes) -> bool:
    return ancestor in reach(read, commit)
