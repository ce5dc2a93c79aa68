"""Path patterns: which paths a grant, a guard or a lease is about.

1. A pattern is names joined by ``/``, relative to the root of the tree. Matching goes name by name: ``/proj/a`` never covers ``/proj/ab``.
2. In a name ``*`` stands for any characters and ``?`` for one. A name ``**`` stands for any number of names, none included, so that
   ``src/**`` also covers ``src`` itself: a guard on a directory sees the directory replaced by a file.
3. Names are bytes. A byte that is no UTF-8 counts as one character; ``*`` matches it, and no text can spell it.
4. The cost of a match is bounded whatever the pattern: states are bits of one integer, nothing is retried, and the limits below hold.
   There are no regular expressions.
5. Pure: no I/O, no clock; any thread.
"""

from __future__ import annotations

import enum
import functools
import itertools
from dataclasses import dataclass

from trust.errors import PatternInvalid

MAX_LENGTH = 512
"""The longest pattern, in characters."""
MAX_NAMES = 32
"""The most names in a pattern."""
MAX_PARTIAL = 4
"""The most names in a pattern that mix text and wildcards (``*.py``)."""
_MEANINGLESS = frozenset(map(chr, (*range(0x20), *range(0xD800, 0xE000))))
"""Control characters, and halves of surrogate pairs."""


class SegmentKind(enum.Enum):
    """What one name of a pattern stands for."""

    DEPTH = "any number of names"
    ANY = "any one name"
    LITERAL = "exactly this name"
    PARTIAL = "names of a form"


@dataclass(frozen=True, slots=True)
class Glob:
    """A name with wildcards, as a bit-parallel automaton: bit i says that the first i characters are matched."""

    text: str
    head: str
    tail: str
    affixes: bool
    loops: int
    wild: int
    masks: dict[str, int]
    final: int

    def matches(self, name: str) -> bool:
        """Tell whether a name has this form."""
        if self.affixes:
            return len(name) >= len(self.head) + len(self.tail) and name.startswith(self.head) and name.endswith(self.tail)
        state = 1
        for character in name:
            state = ((state & (self.masks.get(character, 0) | self.wild)) << 1) | (state & self.loops)
            if not state:
                return False
        return bool(state & self.final)

    def step(self, state: int, character: str) -> int:
        """Return the states after one more character; 1 is where a name begins."""
        return ((state & (self.masks.get(character, 0) | self.wild)) << 1) | (state & self.loops)

    def covers(self, other: Glob) -> bool:
        """Tell whether every name of the other form has this one; exact for one ``*``, else only for the same text."""
        if self.text == other.text:
            return True
        return self.affixes and other.head.startswith(self.head) and other.tail.endswith(self.tail)


def _build_glob(text: str) -> Glob:
    loops, wild, position = 0, 0, 0
    masks: dict[str, int] = {}
    for character in text:
        bit = 1 << position
        if character == "*":
            loops |= bit
            continue
        if character == "?":
            wild |= bit
        else:
            masks[character] = masks.get(character, 0) | bit
        position += 1
    plain = text.replace("?", "*")
    head, tail = plain.split("*", 1)[0], plain.rsplit("*", 1)[1]
    return Glob(text, head, tail, text.count("*") == 1 and not wild, loops, wild, masks, 1 << position)


@dataclass(frozen=True, slots=True)
class Segment:
    """One name of a pattern."""

    kind: SegmentKind
    literal: bytes = b""
    glob: Glob | None = None

    def may_end(self, path: bytes) -> bool:
        """Tell whether a path could match a pattern that ends here; nearly every path cannot, and is spared the walk."""
        name = path[path.rfind(b"/") + 1 :]
        if self.kind is SegmentKind.LITERAL:
            return name == self.literal
        return self.glob is None or self.glob.matches(name.decode("utf-8", "surrogateescape"))


def _parse_segment(name: str) -> Segment:
    if name == "**":
        return Segment(SegmentKind.DEPTH)
    if name == "*":
        return Segment(SegmentKind.ANY)
    if "**" in name:
        raise PatternInvalid(name, "** stands alone between slashes")
    if "*" in name or "?" in name:
        return Segment(SegmentKind.PARTIAL, glob=_build_glob(name))
    return Segment(SegmentKind.LITERAL, name.encode())


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern. Make one with `parse_pattern`."""

    text: str
    segments: tuple[Segment, ...]
    literals: dict[bytes, int]
    partials: tuple[tuple[Glob, int], ...]
    any_name: int
    any_depth: int
    final: int

    def matches(self, path: bytes) -> bool:
        """Tell whether the pattern covers a path (names joined by ``/``; empty: the root)."""
        return self.segments[-1].may_end(path) and bool(self.state_after(path) & self.final)

    def may_match_below(self, directory: bytes) -> bool:
        """Tell whether some path strictly below a directory could match."""
        return bool(self.state_after(directory) & ~self.final)

    def uniform_below(self, directory: bytes) -> bool:
        """Tell whether all names directly in a directory get the same answer, for themselves and for what is below them."""
        return not self.state_after(directory) & ~(self.final | self.any_name | self.any_depth)

    def uniform_subtree(self, directory: bytes) -> bool:
        """Tell whether everything strictly below a directory, at any depth, gets the same answer."""
        state = self.state_after(directory) & ~self.final
        everything = self.any_depth & (self.final >> 1)
        return not state or bool(state & everything)

    def same_below(self, one: bytes, other: bytes) -> bool:
        """Tell whether whatever is below one directory gets the answer that it would get below another."""
        return (self.state_after(one) ^ self.state_after(other)) & ~self.final == 0

    def state_after(self, path: bytes) -> int:
        """Return the automaton's states, as bits, once the names of a path are consumed; 0 when nothing can match any more."""
        state = self._closure(1)
        for name in path.split(b"/") if path else ():
            state = self.step(state, self.accepted_by(name))
            if not state:
                break
        return state

    def step(self, state: int, accepted: int) -> int:
        """Return the states after one more name, which the segments in `accepted` match."""
        return self._closure(((state & accepted) << 1) | (state & self.any_depth))

    def _closure(self, state: int) -> int:
        return state | ((state & self.any_depth) << 1)

    def accepted_by(self, name: bytes) -> int:
        """Return the segments, as bits, that match a name."""
        """Return the segments that match a name, as bits."""
        accepted = self.any_name | self.literals.get(name, 0)
        if self.partials:
            text = name.decode("utf-8", "surrogateescape")
            for glob, bit in self.partials:
                if glob.matches(text):
                    accepted |= bit
        return accepted


@functools.lru_cache(maxsize=4096)
def parse_pattern(text: str) -> Pattern:
    """Return the parsed pattern.

    Raises `PatternInvalid` for a pattern that is not normalised (empty names, ``.``, ``..``, a leading or trailing slash,
    ``**/**``, control characters) or above a limit.
    """
    names = _split(text)
    segments = tuple(_parse_segment(name) for name in names)
    kinds = [segment.kind for segment in segments]
    if kinds.count(SegmentKind.PARTIAL) > MAX_PARTIAL:
        raise PatternInvalid(text, f"more than {MAX_PARTIAL} names mix text and wildcards")
    literals: dict[bytes, int] = {}
    for index, segment in enumerate(segments):
        if segment.kind is SegmentKind.LITERAL:
            literals[segment.literal] = literals.get(segment.literal, 0) | 1 << index
    return Pattern(
        text=text,
        segments=segments,
        literals=literals,
        partials=tuple((segment.glob, 1 << index) for index, segment in enumerate(segments) if segment.glob is not None),
        any_name=_bits(kinds, SegmentKind.ANY),
        any_depth=_bits(kinds, SegmentKind.DEPTH),
        final=1 << len(segments),
    )


def _split(text: str) -> list[str]:
    if len(text) > MAX_LENGTH:
        raise PatternInvalid(text[:32] + "...", f"longer than {MAX_LENGTH} characters")
    if not _MEANINGLESS.isdisjoint(text):
        raise PatternInvalid(repr(text), "control characters and halves of surrogate pairs have no place in a pattern")
    names = text.split("/")
    if len(names) > MAX_NAMES:
        raise PatternInvalid(text, f"more than {MAX_NAMES} names")
    if any(name in {"", ".", ".."} for name in names):
        raise PatternInvalid(text, "write it without leading or trailing slash, empty names, '.' and '..'")
    if ("**", "**") in itertools.pairwise(names):
        raise PatternInvalid(text, "**/** says the same as **")
    return names


def _bits(kinds: list[SegmentKind], kind: SegmentKind) -> int:
    return sum(1 << index for index, found in enumerate(kinds) if found is kind)


@dataclass(frozen=True, slots=True)
class PathSet:
    """Several patterns as one question. Make one with `path_set`.

    Nearly every pattern is exact, ``a/b/**``, ``**/name`` or ``**/*.ending``: all of a form together cost one comparison.
    """

    patterns: tuple[Pattern, ...]
    everything: bool
    exact: frozenset[bytes]
    below: tuple[bytes, ...]
    endings: tuple[bytes, ...]
    general: tuple[Pattern, ...]
    general_starts: tuple[bytes, ...]

    def matches(self, path: bytes) -> bool:
        """Tell whether one of the patterns covers a path (names joined by ``/``; empty: the root)."""
        closed = path + b"/"
        if self.everything or path in self.exact or closed.startswith(self.below) or (b"/" + path).endswith(self.endings):
            return True
        return closed.startswith(self.general_starts) and any(pattern.matches(path) for pattern in self.general)

    def may_match_below(self, directory: bytes) -> bool:
        """Tell whether some path strictly below a directory could match: such a directory is shown as the way to it."""
        return any(pattern.may_match_below(directory) for pattern in self.patterns)

    def uniform_below(self, directory: bytes) -> bool:
        """Tell whether each pattern gives all names directly in a directory the same answer, for them and for what is below them."""
        return self.everything or all(pattern.uniform_below(directory) for pattern in self.patterns)

    def uniform_subtree(self, directory: bytes) -> bool:
        """Tell whether each pattern gives everything below a directory, at any depth, the same answer."""
        return self.everything or all(pattern.uniform_subtree(directory) for pattern in self.patterns)

    def same_below(self, one: bytes, other: bytes) -> bool:
        """Tell whether whatever is below one directory gets, from each pattern, the answer that it would get below another."""
        return self.everything or all(pattern.same_below(one, other) for pattern in self.patterns)


@functools.lru_cache(maxsize=4096)
def path_set(texts: tuple[str, ...]) -> PathSet:
    """Return the parsed patterns as one set. Raises `PatternInvalid`."""
    patterns = tuple(parse_pattern(text) for text in texts)
    exact, below, endings, general = [], [], [], []
    for pattern in patterns:
        kinds = tuple(segment.kind for segment in pattern.segments)
        ending = _ending(pattern, kinds)
        if set(kinds) == {SegmentKind.LITERAL}:
            exact.append(pattern.text.encode())
        elif kinds[-1] is SegmentKind.DEPTH and set(kinds[:-1]) == {SegmentKind.LITERAL}:
            below.append(pattern.text.encode()[:-2])
        elif ending:
            endings.append(ending)
        else:
            general.append(pattern)
    starts = tuple(_start(pattern) for pattern in general)
    return PathSet(patterns, "**" in texts, frozenset(exact), tuple(below), tuple(endings), tuple(general), starts)


def _start(pattern: Pattern) -> bytes:
    """Return what a path that matches, closed by a slash, starts with."""
    names = itertools.takewhile(lambda segment: segment.kind is SegmentKind.LITERAL, pattern.segments)
    return b"".join(segment.literal + b"/" for segment in names)


def _ending(pattern: Pattern, kinds: tuple[SegmentKind, ...]) -> bytes:
    """Return what a slash and the path end with exactly when the pattern matches, or nothing for other forms."""
    if kinds == (SegmentKind.DEPTH, SegmentKind.LITERAL):
        return b"/" + pattern.segments[1].literal
    glob = pattern.segments[-1].glob
    if kinds == (SegmentKind.DEPTH, SegmentKind.PARTIAL) and glob is not None and glob.affixes and not glob.head:
        return glob.tail.encode()
    return b""


def matches_any(patterns: tuple[str, ...], path: bytes) -> bool:
    """Tell whether one of the patterns covers a path."""
    return path_set(patterns).matches(path)


def may_match_below(pattern: str, directory: bytes) -> bool:
    """Tell whether some path strictly below a directory could match: such a directory is shown as the way to it."""
    return parse_pattern(pattern).may_match_below(directory)


def uniform_below(patterns: tuple[str, ...], directory: bytes) -> bool:
    """Tell whether, for each pattern, all names directly in a directory get the same answer (so that one decision serves them all)."""
    return path_set(patterns).uniform_below(directory)
