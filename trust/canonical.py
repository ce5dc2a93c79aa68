"""JSON with one spelling: what is hashed, signed and compared.

1. Keys are sorted, nothing is spaced, everything beyond ASCII is escaped; equal values give equal bytes on every run.
2. Numbers that are no numbers are refused; text may hold lone surrogates (undecodable file names), which survive a round trip.
3. Pure.
"""

from __future__ import annotations

import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_SECRET_MARKS = ("anl1.", "anm1.", "nat1.")
_TOKEN_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_SHORTEST_TOKEN = 40


def canonical(value: Any) -> str:
    """Return the one JSON text of a value. Raises `TypeError` for what JSON cannot say, `ValueError` for NaN."""
    return _ENCODER.encode(value)


def redact(text: str) -> str:
    """Return canonical JSON text in which everything that reads like a token is replaced, so that a record cannot leak one."""
    for mark in _SECRET_MARKS:
        start = text.find(mark)
        while start >= 0:
            end = start
            while end < len(text) and text[end] in _TOKEN_LETTERS:
                end += 1
            if end - start >= _SHORTEST_TOKEN:
                text = f"{text[:start]}{mark}[redacted]{text[end:]}"
            start = text.find(mark, start + len(mark))
    return text
