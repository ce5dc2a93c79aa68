"""The leases that the suite holds: each a narrowing of a run's own, so that the run goes on when it ends."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEAF = "file"
EVERYTHING = ("list", "read", "write", "delete", "propose")


class Standing(enum.Enum):
    """How a lease stands to what is asked."""

    ALLOWED = "allowed"
    HIDDEN = "hidden"
    BESIDE = "hidden beside what is visible"
    READ_ONLY = "read-only"
    REFUSED = "refused by policy"
    SPENT = "over budget"
    EXPIRED = "expired"
    REVOKED = "revoked while open"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a lease is asked for, where the operations work, and on which name."""

    root: str = "work"
    leaf: str = LEAF
    paths: Sequence[str] = ("work/**", "keys/**")
    actions: Sequence[str] = EVERYTHING
    budgets: Mapping[str, int] | None = None
    lives: int | None = None
    """How long it lasts, in seconds."""
    twin: tuple[str, str] | None = None
    """For what is hidden: a root and a name that never existed, of the same lengths."""


TERMS: Mapping[Standing, Terms] = {
    Standing.ALLOWED: Terms(),
    Standing.HIDDEN: Terms(root="hidden", twin=("absent", LEAF)),
    Standing.BESIDE: Terms(leaf="second", paths=("work/*/file",), twin=("work", "absent")),
    Standing.READ_ONLY: Terms(actions=("list", "read")),
    # The default policy keeps everybody from reading and writing private keys, by their names.
    Standing.REFUSED: Terms(root="keys", leaf="id_rsa"),
    Standing.SPENT: Terms(budgets={"reads": 0, "bytes_read": 0, "bytes_written": 0}),
    Standing.EXPIRED: Terms(lives=20),
    Standing.REVOKED: Terms(),
}
