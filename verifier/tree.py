"""The Merkle tree of RFC 6962 as somebody sees it who reads the leaves once, and inclusion proofs against its root.

1. A leaf is SHA-256(0x00 || entry), a node SHA-256(0x01 || left || right).
2. `Tree` keeps one hash for each bit of its size: it can take leaves and whole subtrees, and tell its root at any moment.
3. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_sha256 = hashlib.sha256
_TILE = 256


class Tree:
    """A tree that grows to the right."""

    __slots__ = ("peaks", "size")

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        """Go on from the perfect subtrees that a tree of `size` leaves is made of, largest first. Raises `ValueError`."""
        if len(peaks) != size.bit_count():
            raise ValueError(f"a tree of {size} leaves is made of {size.bit_count()} subtrees, not {len(peaks)}")
        self.size = size
        self.peaks = list(peaks)

    def take_entries(self, entries: Sequence[bytes]) -> None:
        """Take entries, each as one leaf; a whole tile at a time where one begins here, since that is quicker."""
        row = [_sha256(b"\x00" + entry).digest() for entry in entries]
        at = 0
        while at < len(row):
            if self.size % _TILE == 0 and len(row) - at >= _TILE:
                self.take_subtree(_perfect_root(row[at : at + _TILE]), _TILE)
                at += _TILE
            else:
                self.take_subtree(row[at], 1)
                at += 1

    def take_subtree(self, found: bytes, leaves: int) -> None:
        """Take a perfect subtree of so many leaves. Raises `ValueError` where none of that size can stand."""
        if leaves & (leaves - 1) or self.size % leaves:
            raise ValueError(f"no subtree of {leaves} leaves stands after {self.size}")
        rest = self.size // leaves
        while rest & 1:
            found = _sha256(b"\x01" + self.peaks.pop() + found).digest()
            rest >>= 1
        self.peaks.append(found)
        self.size += leaves

    def root(self) -> bytes:
        """Return the root."""
        if not self.peaks:
            return _sha256(b"").digest()
        found = self.peaks[-1]
        for peak in self.peaks[-2::-1]:
            found = _sha256(b"\x01" + peak + found).digest()
        return found


def _perfect_root(row: list[bytes]) -> bytes:
    while len(row) > 1:
        row = [_sha256(b"\x01" + left + right).digest() for left, right in zip(row[::2], row[1::2], strict=True)]
    return row[0]


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Tell whether `proof` shows a leaf hash at `index` of the tree of `size` leaves with this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    at, end, found = index, size - 1, leaf
    for sibling in proof:
        if not end:
            return False
        if at % 2 or at == end:
            found = _sha256(b"\x01" + sibling + found).digest()
            while at and at % 2 == 0:
                at, end = at // 2, end // 2
        else:
            found = _sha256(b"\x01" + found + sibling).digest()
        at, end = at // 2, end // 2
    return end == 0 and found == root
