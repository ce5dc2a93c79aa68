"""Three-way merge and unified diff of small texts, line by line.

1. A line ends with a newline; the last one may lack it. Bytes with a NUL among the first 8,000 are binary: neither merged nor shown.
2. Lines that both sides left alone separate the regions; a region that one side changed is taken from it, one that both changed
   alike is taken once, and one that both changed differently does not merge. Changes that touch are one region.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_PROBE = 8_000


def is_binary(content: bytes) -> bool:
    """Tell whether content is binary, as git decides it."""
    return b"\0" in content[:_PROBE]


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merged text, or None when the changes do not combine."""
    if any(is_binary(content) for content in (base, ours, theirs)):
        return None
    old, mine, other = _split_lines(base), _split_lines(ours), _split_lines(theirs)
    merged: list[bytes] = []
    at_old = at_mine = at_other = 0
    for stop_old, stop_mine, stop_other, length in _stable_regions(old, mine, other):
        region = _choose(old[at_old:stop_old], mine[at_mine:stop_mine], other[at_other:stop_other])
        if region is None:
            return None
        merged += region
        merged += old[stop_old : stop_old + length]
        at_old, at_mine, at_other = stop_old + length, stop_mine + length, stop_other + length
    return b"".join(merged)


def _split_lines(content: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _choose(old: Sequence[bytes], mine: Sequence[bytes], other: Sequence[bytes]) -> Sequence[bytes] | None:
    if other in (mine, old):
        return mine
    return other if mine == old else None


def _stable_regions(old: Sequence[bytes], mine: Sequence[bytes], other: Sequence[bytes]) -> list[tuple[int, int, int, int]]:
    """Return (start in old, in mine, in other, length) of the runs of lines that all three share, an empty one at the end."""
    to_mine, to_other = _matches(old, mine), _matches(old, other)
    found: list[tuple[int, int, int, int]] = []
    for at in sorted(to_mine.keys() & to_other.keys()):
        here, there = to_mine[at], to_other[at]
        if found and (at, here, there) == tuple(start + found[-1][3] for start in found[-1][:3]):
            found[-1] = (*found[-1][:3], found[-1][3] + 1)
        else:
            found.append((at, here, there, 1))
    return [*found, (len(old), len(mine), len(other), 0)]


def _matches(old: Sequence[bytes], side: Sequence[bytes]) -> dict[int, int]:
    blocks = difflib.SequenceMatcher(None, old, side, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}


def unify_lines(old_path: bytes, new_path: bytes, old: bytes | None, new: bytes | None) -> bytes | None:
    """Return a unified diff (None for a side: the file is not there), or None when a side is binary."""
    before, after = old or b"", new or b""
    if is_binary(before) or is_binary(after):
        return None
    names = (b"/dev/null" if old is None else b"a/" + old_path, b"/dev/null" if new is None else b"b/" + new_path)
    lines = difflib.diff_bytes(difflib.unified_diff, _split_lines(before), _split_lines(after), *names)
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)
