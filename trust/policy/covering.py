"""How patterns stand to one another: which covers which, and which meet.

1. `covers` may answer no where yes is true (it is used to narrow), never the other way round; `overlap` may answer yes where no is true.
2. Both look at pairs of states, each once; what a comparison costs is counted in steps (`Effort`), never timed.
3. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from trust.errors import ScopeInvalid
from trust.policy.patterns import Pattern, Segment, SegmentKind, parse_pattern

_MAX_PAIRS = 1024
"""The most state pairs `covers` looks at before it answers no."""
_PARSING = 8
"""What looking at two patterns costs, before the first step."""


class Effort:
    """How much comparing of patterns is left. Counted in steps, not in time, so that the same question always gets the same answer."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        """Start with a number of steps, of about a microsecond each."""
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps. Raises `ScopeInvalid` when there are not so many."""
        self.left -= steps
        if self.left < 0:
            raise ScopeInvalid("patterns", "they take too much effort to compare; use fewer, or plainer ones")


def covers(wider: str, narrower: str, effort: Effort | None = None) -> bool:
    """Tell whether every path that `narrower` matches is matched by `wider`. May say no where yes is true.

    Raises `ScopeInvalid` when that takes more than `effort` has left.
    """
    if effort is not None:
        effort.spend(1)
    if wider in (narrower, "**"):
        return True
    first = wider.partition("/")[0]
    if "*" not in first and "?" not in first and first != narrower.partition("/")[0]:
        return False
    if effort is not None:
        effort.spend(_PARSING)
    outer, inner = parse_pattern(wider), parse_pattern(narrower)
    pending = [(0, outer.state_after(b""))]
    seen = set(pending)
    while pending:
        index, state = pending.pop()
        if index == len(inner.segments):
            if not state & outer.final:
                return False
            continue
        if effort is not None:
            effort.spend(_steps(outer, inner.segments[index]))
        for pair in _successors(outer, inner.segments[index], index, state):
            if pair not in seen:
                seen.add(pair)
                pending.append(pair)
        if len(seen) > _MAX_PAIRS:
            return False
    return True


def _steps(outer: Pattern, segment: Segment) -> int:
    """Return what one step costs: a name is walked through by every name of the other pattern that mixes text and wildcards."""
    return 2 + len(outer.partials) * (1 + len(segment.literal) // 8)


def _successors(outer: Pattern, segment: Segment, index: int, state: int) -> list[tuple[int, int]]:
    if segment.kind is SegmentKind.DEPTH:
        return [(index + 1, state), (index, outer.step(state, outer.any_name))]
    return [(index + 1, outer.step(state, _accepted_for_all(outer, segment)))]


def _accepted_for_all(outer: Pattern, segment: Segment) -> int:
    """Return the segments of `outer` that match every name the given segment stands for."""
    if segment.kind is SegmentKind.LITERAL:
        return outer.accepted_by(segment.literal)
    accepted = outer.any_name
    for glob, bit in outer.partials:
        if segment.glob is not None and glob.covers(segment.glob):
            accepted |= bit
    return accepted


def covered(wider: Iterable[str], narrower: str, effort: Effort | None = None) -> bool:
    """Tell whether one of the patterns covers all of `narrower`. Raises as `covers`."""
    return any(covers(text, narrower, effort) for text in wider)


def overlap(one: str, other: str) -> bool:
    """Tell whether some path matches both patterns. May say yes where no is true (``a*`` and ``*b``), never the other way."""
    first, second = parse_pattern(one).segments, parse_pattern(other).segments
    pending = [(0, 0)]
    seen = set(pending)
    while pending:
        at, beside = pending.pop()
        if at == len(first) and beside == len(second):
            return True
        for pair in _meeting_points(first, second, at, beside):
            if pair not in seen:
                seen.add(pair)
                pending.append(pair)
    return False


def _meeting_points(first: tuple[Segment, ...], second: tuple[Segment, ...], at: int, beside: int) -> list[tuple[int, int]]:
    """Return where two patterns can stand after one name more, or after one of them let its ``**`` end."""
    pairs = []
    here = first[at] if at < len(first) else None
    there = second[beside] if beside < len(second) else None
    if here is not None and here.kind is SegmentKind.DEPTH:
        pairs.append((at + 1, beside))
    if there is not None and there.kind is SegmentKind.DEPTH:
        pairs.append((at, beside + 1))
    if here is not None and there is not None and _share_a_name(here, there):
        pairs.append((at + (here.kind is not SegmentKind.DEPTH), beside + (there.kind is not SegmentKind.DEPTH)))
    return pairs


def _share_a_name(one: Segment, other: Segment) -> bool:
    if one.kind is SegmentKind.LITERAL and other.kind is SegmentKind.LITERAL:
        return one.literal == other.literal
    for literal, form in ((one, other), (other, one)):
        if literal.kind is SegmentKind.LITERAL and form.glob is not None:
            return form.glob.matches(literal.literal.decode("utf-8", "surrogateescape"))
    return True
