"""Which names and paths no pattern tells apart: a finite number of classes, one witness for each.

1. Two paths are in one class when each of the given sets of patterns says the same of both. What a policy says of a path depends on nothing
   else of it, so that asking about every witness is asking about every path.
2. Patterns are automata; their product is walked breadth first, so that each witness is a shortest one.
3. Exact while `complete`; beyond `limit` states the walk stops and says so.
4. Pure and deterministic.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trust.policy.patterns import Glob, PathSet, Pattern

MOST_STATES = 20_000
"""How many states of the product are walked."""
_PLAIN = "xyzuvwabcdefghijklmnopqrst0123456789"
_NO_NAMES = frozenset({b"", b".", b".."})

_State = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Classes:
    """Witnesses, each with the sets that match it: bit i for the i-th set. `complete` tells whether there are no others."""

    members: tuple[tuple[bytes, int], ...]
    complete: bool


def path_classes(sets: Sequence[PathSet], limit: int = MOST_STATES) -> Classes:
    """Return a path for every class that the sets tell apart; the root (empty) only where it is alone in its class."""
    names, complete = _distinct_names([pattern for each in sets for pattern in each.patterns], limit)
    accepted = [[pattern.accepted_by(name) for each in sets for pattern in each.patterns] for name in names]
    start = [pattern.state_after(b"") for each in sets for pattern in each.patterns]
    sizes = [len(each.patterns) for each in sets]
    patterns = [pattern for each in sets for pattern in each.patterns]
    found: dict[int, bytes] = {}
    pending = deque([(b"", start)])
    seen = {_summary(patterns, start, sizes)[1]}
    while pending:
        path, states = pending.popleft()
        if path:
            found.setdefault(_summary(patterns, states, sizes)[0], path)
        for name, bits in zip(names, accepted, strict=True):
            after = [pattern.step(state, bit) for pattern, state, bit in zip(patterns, states, bits, strict=True)]
            summary = _summary(patterns, after, sizes)[1]
            if summary in seen:
                continue
            if len(seen) >= limit:
                return Classes(tuple((witness, bits) for bits, witness in found.items()), complete=False)
            seen.add(summary)
            pending.append((path + b"/" + name if path else name, after))
    found.setdefault(_summary(patterns, start, sizes)[0], b"")
    return Classes(tuple((witness, bits) for bits, witness in found.items()), complete)


def name_classes(sets: Sequence[PathSet], limit: int = MOST_STATES) -> Classes:
    """Return a name for every class that sets of patterns of one name each tell apart."""
    names, complete = _distinct_names([pattern for each in sets for pattern in each.patterns], limit)
    found: dict[int, bytes] = {}
    for name in names:
        found.setdefault(sum(1 << index for index, each in enumerate(sets) if each.matches(name)), name)
    return Classes(tuple((witness, bits) for bits, witness in found.items()), complete)


def _summary(patterns: Sequence[Pattern], states: Sequence[int], sizes: Sequence[int]) -> tuple[int, _State]:
    """Return which sets match here, and all that decides what can match from here on."""
    matched, futures, at = 0, [], 0
    for index, size in enumerate(sizes):
        here = range(at, at + size)
        at += size
        matches = any(states[number] & patterns[number].final for number in here)
        matched |= matches << index
        futures.append((matches, _future(patterns, states, here)))
    return matched, tuple(futures)


def _future(patterns: Sequence[Pattern], states: Sequence[int], here: range) -> object:
    """Return what of a set's states bears on longer paths: one value for "everything", whichever pattern says so."""
    left = []
    for number in here:
        pattern = patterns[number]
        state = states[number] & ~pattern.final
        if state & pattern.any_depth & (pattern.final >> 1):
            return True
        if state:
            left.append((number, state))
    return tuple(left)


def _distinct_names(patterns: Iterable[Pattern], limit: int) -> tuple[list[bytes], bool]:
    """Return a shortest name for every class that the segments of patterns tell apart, the plainest first."""
    literals: set[str] = set()
    forms: dict[str, Glob] = {}
    for pattern in patterns:
        literals.update(name.decode() for name in pattern.literals)
        forms.update((glob.text, glob) for glob, _ in pattern.partials)
    globs = tuple(forms.values())
    found: dict[tuple[bool, ...], str] = {}
    walked = 0
    for name in itertools.islice(_walk_names(literals, globs), limit):
        walked += 1
        if name.encode() not in _NO_NAMES and name not in literals:
            found.setdefault(tuple(glob.matches(name) for glob in globs), name)
    return [name.encode() for name in (*found.values(), *sorted(literals))], walked < limit


def _walk_names(literals: set[str], globs: tuple[Glob, ...]) -> Iterator[str]:
    """Yield a shortest name for each state that the forms and the beginnings of literals have together."""
    beginnings = {literal[:length] for literal in literals for length in range(len(literal) + 1)}
    following: dict[str, set[str]] = {}
    for beginning in beginnings:
        if beginning:
            following.setdefault(beginning[:-1], set()).add(beginning[-1])
    letters = _letters(literals, globs)
    start: tuple[str, tuple[int, ...]] = ("", (1,) * len(globs))
    pending = deque([start])
    seen: set[tuple[str | None, tuple[int, ...]]] = {start}
    while pending:
        name, states = pending.popleft()
        yield name
        for letter in (*letters, *sorted(following.get(name, set()).difference(letters))):
            longer = name + letter
            after = tuple(glob.step(state, letter) for glob, state in zip(globs, states, strict=True))
            key = (longer if longer in beginnings else None, after)
            if key not in seen:
                seen.add(key)
                pending.append((longer, after))


def _letters(literals: set[str], globs: tuple[Glob, ...]) -> tuple[str, ...]:
    """Return the letters that the forms tell apart, after one that neither they nor the literals know."""
    known = {letter for glob in globs for letter in glob.masks}
    used = known.union(*literals) if literals else known
    stranger = next(letter for letter in itertools.chain(_PLAIN, map(chr, itertools.count(0x4E00))) if letter not in used)
    return (stranger, *sorted(known - {"/"}))
