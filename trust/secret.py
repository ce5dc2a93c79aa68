"""A value that must not be seen: keys, tails, the secret half of a token.

1. Printing, formatting and logging show that there is a secret, never which. Only `reveal` gives it out, and reads as what it is.
2. Comparison takes the same time wherever the difference is. Secrets are not hashable: they are no keys of mappings.
3. Pure.
"""

from __future__ import annotations

import hmac
from typing import NoReturn


class Secret:
    """Bytes that do not show themselves."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: bytes) -> None:
        self._value = value

    def reveal(self) -> bytes:
        """Return the bytes themselves."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    def __repr__(self) -> str:
        return "Secret(...)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")
