"""Which paths fit a pattern, and which lines contain a text. Pure.

1. A pattern is an automaton over the names of a path, so that what is left of it after a name tells whether going deeper can help; its
   cost is linear in the path, whatever the pattern.
2. Text is literal. A file is looked at in pieces of `WINDOW` bytes that end with a line; a line longer than that is looked at in parts
   that overlap, so that a match across a seam is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

WINDOW = 256 << 10
"""How many bytes of a file are looked at together."""

_LEAD = 60

States = frozenset[int]
"""How much of a pattern the names so far may stand for."""


class Pattern:
    """A glob over the names of a path; without a slash it fits at any depth, unless it is `anchored`.

    ``*``, ``?`` and ``[a-z]`` stay within a name, ``**`` is any number of names.
    """

    def __init__(self, glob: str, *, anchored: bool = False) -> None:
        """Read a pattern; every text is one."""
        parts = glob.strip("/").split("/")
        self._parts = ["**", *parts] if len(parts) == 1 and not anchored else parts
        self.start = self._skip({0})

    def step(self, states: States, name: bytes) -> States:
        """Return the states after one more name; none: nothing below can fit."""
        text = name.decode("utf-8", "surrogateescape")
        following: set[int] = set()
        for state in states:
            if state == len(self._parts):
                continue
            if self._parts[state] == "**":
                following.add(state)
            elif fnmatchcase(text, self._parts[state]):
                following.add(state + 1)
        return self._skip(following)

    def fits(self, states: States) -> bool:
        """Tell whether a path that led to these states fits."""
        return len(self._parts) in states

    def _skip(self, states: set[int]) -> States:
        """Add where ``**`` lets one be by standing for no name at all."""
        reached = set(states)
        for state in sorted(states):
            while state < len(self._parts) and self._parts[state] == "**":
                state += 1
                reached.add(state)
        return frozenset(reached)


class Needle:
    """The text that is looked for, in bytes as they come from a file."""

    def __init__(self, text: str, *, ignore_case: bool) -> None:
        """Look for a text without line breaks."""
        self._exact = text.encode("utf-8", "surrogatepass")
        self._folded = text.casefold() if ignore_case else ""
        self._seam = min(4 * len(self._exact), WINDOW // 2)

    def cut(self, read: bytes) -> tuple[bytes, int]:
        """Return the part of what was read that is to be looked at now, and how far to advance in the file after it."""
        end = read.rfind(b"\n") + 1
        if len(read) < WINDOW:
            return read, len(read)
        return (read[:end], end) if end else (read, len(read) - self._seam)

    def lines(self, piece: bytes) -> Iterator[tuple[int, int, int, int]]:
        """Yield of each line that contains the text its number (from 0), start, first match and end."""
        return self._folded_lines(piece) if self._folded else self._exact_lines(piece)

    def _exact_lines(self, piece: bytes) -> Iterator[tuple[int, int, int, int]]:
        line = counted = 0
        at = piece.find(self._exact)
        while at >= 0:
            line += piece.count(b"\n", counted, at)
            start, end = piece.rfind(b"\n", 0, at) + 1, piece.find(b"\n", at)
            yield line, start, at, end if end >= 0 else len(piece)
            if end < 0:
                return
            counted, at = end, piece.find(self._exact, end)

    def _folded_lines(self, piece: bytes) -> Iterator[tuple[int, int, int, int]]:
        if self._folded not in _fold(piece):
            return
        start = 0
        for number, line in enumerate(piece.split(b"\n")):
            if (at := _fold(line).find(self._folded)) >= 0:
                # Folding may change lengths, so the position within the line is a close guess; it only centres the excerpt.
                yield number, start, start + min(at, len(line)), start + len(line)
            start += len(line) + 1


def cut_excerpt(line: bytes, at: int, size: int) -> str:
    r"""Return at most `size` characters of a line around a position; bytes that are not UTF-8 read ``\xNN``."""
    first = max(at - _LEAD, 0)
    while first and line[first] & 0xC0 == 0x80:
        first -= 1  # not in the middle of a character
    text = line[first : first + 4 * size].rstrip(b"\r").decode("utf-8", "backslashreplace")
    return text[:size]


def _fold(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape").casefold()
