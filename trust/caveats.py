"""Caveats: the narrowings a lease token carries, from a closed set, each with one way to be well formed.

1. ``p`` paths, ``a`` actions, ``exp`` and ``nbf`` times, ``bud`` budgets, ``pur`` purpose, ``dst`` destinations, ``aud`` doors, ``cnf`` the
   holder's key, ``lab`` the highest label that may be read, ``who`` the actors it was handed on to, ``dep`` the generations below it.
2. A caveat that is not wholly understood is refused: a restriction that is not understood is never ignored.
3. Everything a caveat can say is bounded, so that whoever holds a token cannot make its verification expensive.
4. Pure. Errors never quote a caveat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trust.canonical import canonical
from trust.errors import PatternInvalid, Unauthenticated
from trust.labels import Origin, Sensitivity
from trust.model import LEASABLE, BudgetKind
from trust.policy.patterns import parse_pattern

Caveat = Mapping[str, Any]
"""One narrowing, by the letters of `CAVEATS`."""
DOORS = frozenset({"http", "webdav", "git", "s3", "mcp", "mount", "ssh"})
"""Where a lease can be used; ``git`` is git over HTTP, ``ssh`` git over SSH."""
PROOFS = {"ssh": "SHA256:", "x5t": ""}
"""The kinds of keys a holder can have (of SSH, of a client certificate), and what their thumbprints start with."""
MAX_PATTERNS = 64
"""The most patterns in all caveats of a token."""
MAX_PURPOSE = 200
"""The longest purpose, in characters."""
MAX_NAMES = 4
"""The most actors that one caveat adds."""
MAX_NAME = 128
"""The longest name of an actor, in characters."""
MAX_DEPTH = 32
"""The most generations that a lease can say may hang below it."""
_LARGEST = 1 << 53
_DIGEST_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_DIGEST_LENGTH = 43


def spell(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """Return the one text of each caveat: what is hashed."""
    return tuple(canonical(caveat) for caveat in caveats)


def check_caveats(caveats: Iterable[object]) -> None:
    """Refuse caveats of which one is not wholly understood, or that are too many patterns together. Raises `Unauthenticated`."""
    patterns = 0
    for caveat in caveats:
        check_caveat(caveat)
        assert isinstance(caveat, dict)
        patterns += len(caveat.get("p", ())) + len(caveat.get("dst", ()))
    if patterns > MAX_PATTERNS:
        raise Unauthenticated("lease token", f"its caveats hold more than {MAX_PATTERNS} patterns")


def check_caveat(caveat: object) -> None:
    """Refuse a caveat that is not wholly understood. Raises `Unauthenticated`."""
    if not isinstance(caveat, dict) or not caveat:
        raise Unauthenticated("lease token", "malformed caveat")
    for letter, value in caveat.items():
        check = CAVEATS.get(letter)
        if check is None or not check(value):
            raise Unauthenticated("lease token", "a caveat is not understood")


def is_thumbprint(value: object) -> bool:
    """Tell whether a value is a key's thumbprint: its kind, a colon, and the base64 of 32 bytes without padding."""
    if not isinstance(value, str):
        return False
    kind, _, digest = value.partition(":")
    start = PROOFS.get(kind)
    if start is None or not digest.startswith(start):
        return False
    letters = digest[len(start) :]
    return len(letters) == _DIGEST_LENGTH and _DIGEST_LETTERS.issuperset(letters)


def is_actor(value: object) -> bool:
    """Tell whether a value can name an actor: what people can read on one line."""
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable() and value == value.strip()


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_patterns(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and _is_pattern(each) for each in value)


def _is_pattern(text: str) -> bool:
    try:
        parse_pattern(text)
    except PatternInvalid:
        return False
    return True


def _is_subset(value: object, known: frozenset[str]) -> bool:
    return (
        isinstance(value, list) and all(isinstance(each, str) for each in value) and value == sorted(set(value)) and known.issuperset(value)
    )


_ACTIONS = frozenset(action.value for action in LEASABLE)
_BUDGETS = frozenset(kind.value for kind in BudgetKind)
_ORIGINS = frozenset(origin.name.lower() for origin in Origin)
_SENSITIVITIES = frozenset(sensitivity.name.lower() for sensitivity in Sensitivity)


def _is_budgets(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and _BUDGETS.issuperset(value) and all(map(_is_number, value.values()))


def _is_purpose(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_PURPOSE


def _is_label(value: object) -> bool:
    if not isinstance(value, dict) or not value or not {"origin", "sensitivity"}.issuperset(value):
        return False
    return _is_word(value.get("origin", "owner"), _ORIGINS) and _is_word(value.get("sensitivity", "public"), _SENSITIVITIES)


def _is_word(value: object, known: frozenset[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_actors(value: object) -> bool:
    return isinstance(value, list) and 0 < len(value) <= MAX_NAMES and all(map(is_actor, value))


CAVEATS: Mapping[str, Callable[[object], bool]] = {
    "p": _is_patterns,
    "a": lambda value: isinstance(value, list) and all(_is_word(each, _ACTIONS) for each in value),
    "exp": _is_number,
    "nbf": _is_number,
    "bud": _is_budgets,
    "pur": _is_purpose,
    "dst": _is_patterns,
    "aud": lambda value: _is_subset(value, DOORS),
    "cnf": is_thumbprint,
    "lab": _is_label,
    "who": _is_actors,
    "dep": lambda value: _is_number(value) and isinstance(value, int) and value <= MAX_DEPTH,
}
"""Every caveat there is, with what tells whether a value is well formed."""
