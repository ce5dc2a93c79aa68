"""Durations, sizes and times as people write them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SIZES = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)?")
_SIZE = re.compile(r"(\d+)\s*([a-z]*)")


def parse_duration(value: object) -> float:
    """Return seconds from a number of seconds or from text such as ``90s``, ``30min``, ``1h30m`` or ``7d``. Raises `ValueError`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    text = str(value).strip().lower()
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f"{value!r} is not a duration")
    return sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)


def render_duration(seconds: int) -> str:
    """Return whole seconds as text with at most two units, such as ``1d``, ``1h30m`` or ``90s``."""
    parts: list[str] = []
    left = seconds
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size and len(parts) < 2:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts) or "0s"


def parse_size(value: object) -> int:
    """Return a count from a whole number or from text such as ``10MiB`` or ``5GB``. Raises `ValueError`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(str(value).strip().lower())
    if match is None or match[2] not in _SIZES:
        raise ValueError(f"{value!r} is not a size")
    return int(match[1]) * _SIZES[match[2]]


def render_time(seconds: float | None) -> str | None:
    """Return an RFC 3339 UTC time for seconds since the epoch, None for None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
