"""A secret taken out of what a server sent back, in every spelling that servers echo one in. Pure.

1. Looked for: the bytes themselves, percent-encoded, as JSON and HTML escape them, in hexadecimal, in both alphabets of Base64 at each of
   the three alignments (so that also ``user:password`` is found). What a server encrypted or reversed is not found.
2. A secret shorter than `SHORTEST` is none: taking it out would take other bytes with it.
"""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

SHORTEST = 8
"""Bytes of the shortest secret."""
REMOVED = b"[secret removed]"


def spell(secret: bytes) -> tuple[bytes, ...]:
    """Return every spelling that is looked for, the longest first."""
    found = {secret, *_percent(secret), secret.hex().encode(), secret.hex().upper().encode(), *_base64(secret)}
    try:
        text = secret.decode()
    except UnicodeDecodeError:
        return _ordered(found)
    for ascii_only in (True, False):
        found.add(json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode())
    found |= {html.escape(text).encode(), html.escape(text, quote=False).encode()}
    return _ordered(found | {each.replace(b"/", b"\\/") for each in tuple(found)})


def scrub(data: bytes, secret: bytes) -> tuple[bytes, int]:
    """Return the data without the secret, and how often it was taken out."""
    count = 0
    for spelling in spell(secret):
        found = data.count(spelling)
        if found:
            data, count = data.replace(spelling, REMOVED), count + found
    return data, count


def scrub_text(text: str, secret: bytes) -> str:
    """Return a text without the secret."""
    return scrub(text.encode("utf-8", "surrogateescape"), secret)[0].decode("utf-8", "surrogateescape")


def _ordered(spellings: set[bytes]) -> tuple[bytes, ...]:
    return tuple(sorted(spellings, key=lambda each: (-len(each), each)))


def _percent(secret: bytes) -> set[bytes]:
    upper = quote(secret, safe="").encode()
    lower = bytearray(upper)
    for place, byte in enumerate(upper):
        if byte == 0x25:
            lower[place + 1 : place + 3] = upper[place + 1 : place + 3].lower()
    return {upper, bytes(lower), quote(secret, safe="/").encode(), upper.replace(b"%20", b"+")}


def _base64(secret: bytes) -> set[bytes]:
    """Return what of the secret's Base64 is the same whatever stands before and after it."""
    found = set()
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        padded = bytes(before) + secret
        certain = len(padded) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.add(encode(padded)[skipped:certain])
    return found
