"""Ids of runs, proposals and the like: short, sortable by time, readable aloud. Pure: time and randomness are arguments."""

from __future__ import annotations

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def make_id(prefix: str, now: float, randomness: bytes) -> str:
    """Return `prefix` and 15 base-32 digits: 9 of the milliseconds of `now`, 6 of `randomness` (at least 4 bytes)."""
    value = (int(now * 1000) << 30) | (int.from_bytes(randomness[:4], "big") & 0x3FFFFFFF)
    digits = []
    for _ in range(15):
        value, digit = divmod(value, 32)
        digits.append(_ALPHABET[digit])
    return prefix + "".join(reversed(digits))
