"""Whether one tree is the beginning of another: consistency proofs of RFC 6962, verified as RFC 9162 (2.1.4.2) says. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

EMPTY = hashlib.sha256(b"").digest()
"""The root of the tree without leaves."""


def is_consistent(first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]) -> bool:
    """Tell whether `proof` shows that the tree of `first` leaves is the beginning of that of `second`."""
    if first == second:
        return not proof and first_root == second_root
    if first == 0:
        return not proof
    if first > second or not proof:
        return False
    path = list(proof)
    if first & (first - 1) == 0:
        path.insert(0, first_root)
    inner, outer = first - 1, second - 1
    while inner % 2:
        inner, outer = inner // 2, outer // 2
    old = new = path[0]
    for sibling in path[1:]:
        if outer == 0:
            return False
        if inner % 2 or inner == outer:
            old, new = _node(sibling, old), _node(sibling, new)
            while inner and inner % 2 == 0:
                inner, outer = inner // 2, outer // 2
        else:
            new = _node(new, sibling)
        inner, outer = inner // 2, outer // 2
    return outer == 0 and old == first_root and new == second_root


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
