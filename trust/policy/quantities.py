"""Sizes and durations as people write them: ``50GiB``, ``24h``.

1. A plain number is bytes or seconds. Units are exact words; there is no ``m`` that might mean months.
2. Pure.
"""

from __future__ import annotations

from trust.errors import QuantityInvalid

SIZE_UNITS = {
    "": 1,
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
"""The words for sizes and what they stand for in bytes."""
DURATION_UNITS = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}
"""The words for durations and what they stand for in seconds."""
_LARGEST = 1 << 62


def parse_size(value: int | str) -> int:
    """Return bytes. Raises `QuantityInvalid`."""
    return _parse(value, SIZE_UNITS, "a size such as 4096, 20MiB or 50GiB")


def parse_duration(value: int | str) -> int:
    """Return seconds. Raises `QuantityInvalid`."""
    return _parse(value, DURATION_UNITS, "a duration such as 300s, 30min, 24h or 7d")


def _parse(value: int | str, units: dict[str, int], wanted: str) -> int:
    text = str(value)
    digits = text.rstrip("".join(units))
    unit = text[len(digits) :].strip()
    number = digits.strip()
    if not (number.isascii() and number.isdigit() and len(number) <= 19) or unit not in units:
        raise QuantityInvalid(text, f"expected {wanted}")
    amount = int(number) * units[unit]
    if amount > _LARGEST:
        raise QuantityInvalid(text, "too large to count")
    return amount
