"""The Merkle tree over the chain of records (RFC 6962, 2.1): roots, proofs and their verification, with the algorithms of RFC 9162.

1. A leaf is SHA-256(0x00 || entry), a node SHA-256(0x01 || left || right), the empty tree SHA-256 of nothing. The entry of a record is its
   32-byte hash in the chain, so that the tree binds what the chain binds; leaf 0 is record 1.
2. A perfect subtree is named by its level and its position there: (0, n) is leaf n. Whoever proves gives `Nodes`, which looks them up; each
   proof asks for a number of them that grows with the logarithm of the size.
3. Only nodes of `TILE_LEVEL` and above are kept: one for every `TILE` records, and those over them. What is below is hashed again when
   somebody asks.
4. A proof is a list of hashes from the leaf towards the root. Verification takes any bytes and answers, whatever they are.
5. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

EMPTY = hashlib.sha256(b"").digest()
"""The root of the tree without leaves."""
TILE_LEVEL = 8
"""The lowest level that is kept."""
TILE = 1 << TILE_LEVEL
"""How many leaves a node of that level stands for."""

Nodes = Callable[[int, int], bytes]
"""Returns the hash of the perfect subtree at a level and a position."""
Proof = Sequence[bytes]
"""Hashes, from the leaf towards the root."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the leaf of an entry."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the node over two others."""
    return hashlib.sha256(b"\1" + left + right).digest()


def perfect_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over 2**n leaf hashes."""
    row = list(leaves)
    sha256 = hashlib.sha256
    while len(row) > 1:
        row = [sha256(b"\1" + row[at] + row[at + 1]).digest() for at in range(0, len(row), 2)]
    return row[0]


class Frontier:
    """The perfect subtrees of a growing tree, largest first: enough to go on and to tell the root, and nothing else."""

    def __init__(self, size: int = 0, roots: Iterable[bytes] = ()) -> None:
        """Go on from a tree of `size` leaves with these subtrees, one for each bit of `size`."""
        self.size = size
        self.roots = list(roots)

    def add(self, leaves: Sequence[bytes]) -> None:
        """Take the next leaf hashes."""
        for leaf in leaves:
            self._add(leaf, 0)

    def add_subtree(self, root: bytes, level: int) -> None:
        """Take a perfect subtree of 2**level leaves; the size so far is a multiple of that."""
        self._add(root, level)

    def root(self) -> bytes:
        """Return the root of the tree as it is."""
        if not self.roots:
            return EMPTY
        found = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            found = node_hash(left, found)
        return found

    def _add(self, found: bytes, level: int) -> None:
        carried = self.size >> level
        while carried & 1:
            found = node_hash(self.roots.pop(), found)
            carried >>= 1
        self.roots.append(found)
        self.size += 1 << level


def grow(position: int, tile: bytes, nodes: Nodes) -> list[tuple[int, int, bytes]]:
    """Return the kept nodes that the tile at `position` completes, itself first, as level, position and hash."""
    level, found = TILE_LEVEL, tile
    completed = [(level, position, found)]
    while position & 1:
        found = node_hash(nodes(level, position - 1), found)
        level, position = level + 1, position >> 1
        completed.append((level, position, found))
    return completed


def subtree_root(nodes: Nodes, start: int, end: int) -> bytes:
    """Return the root over the leaves [start, end); `start` is a multiple of the largest power of two below the length."""
    if start == end:
        return EMPTY
    level = (end - start).bit_length() - 1
    if end - start == 1 << level:
        return nodes(level, start >> level)
    middle = start + _split(end - start)
    return node_hash(subtree_root(nodes, start, middle), subtree_root(nodes, middle, end))


def prove_inclusion(nodes: Nodes, index: int, size: int) -> list[bytes]:
    """Return the proof that leaf `index` is in the tree of `size` leaves (RFC 9162, 2.1.3.1)."""
    return _path(nodes, index, 0, size)


def prove_consistency(nodes: Nodes, first: int, second: int) -> list[bytes]:
    """Return the proof that the tree of `first` leaves is a beginning of that of `second` (RFC 9162, 2.1.4.1)."""
    return _subproof(nodes, first, 0, second, whole=True) if 0 < first < second else []


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Proof, root: bytes) -> bool:
    """Tell whether a proof shows that a leaf hash stands at `index` in the tree of `size` leaves and this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    place, last, found = index, size - 1, leaf
    for other in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(other, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, other)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(first: int, second: int, first_root: bytes, second_root: bytes, proof: Proof) -> bool:
    """Tell whether a proof shows that the one tree is a beginning of the other (RFC 9162, 2.1.4.2)."""
    if not 0 <= first <= second:
        return False
    if first in (0, second):
        return not proof and (first_root == second_root if first == second else first_root == EMPTY)
    path = list(proof) if first & (first - 1) else [first_root, *proof]
    if not path:
        return False
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = now = path[0]
    for other in path[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, now = node_hash(other, old), node_hash(other, now)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            now = node_hash(now, other)
        place, last = place >> 1, last >> 1
    return last == 0 and old == first_root and now == second_root


def _split(length: int) -> int:
    """Return the largest power of two below `length`."""
    return 1 << ((length - 1).bit_length() - 1)


def _path(nodes: Nodes, index: int, start: int, end: int) -> list[bytes]:
    if end - start == 1:
        return []
    middle = start + _split(end - start)
    if index < middle:
        return [*_path(nodes, index, start, middle), subtree_root(nodes, middle, end)]
    return [*_path(nodes, index, middle, end), subtree_root(nodes, start, middle)]


def _subproof(nodes: Nodes, first: int, start: int, end: int, *, whole: bool) -> list[bytes]:
    if first == end:
        return [] if whole else [subtree_root(nodes, start, end)]
    middle = start + _split(end - start)
    if first <= middle:
        return [*_subproof(nodes, first, start, middle, whole=whole), subtree_root(nodes, middle, end)]
    return [*_subproof(nodes, first, middle, end, whole=False), subtree_root(nodes, start, middle)]
