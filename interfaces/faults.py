"""Failures as every door sees them: a closed set of kinds, and the one exception that carries them.

1. A door translates `Kind` by one total table of its own (errno, HTTP status, S3 code ...); it never matches on text.
2. What a lease cannot see is `NOT_FOUND`, in the same words as what does not exist.
3. A fault is written for a person: what happened, to what, and what to do next.
"""

from __future__ import annotations

import enum


class Kind(enum.Enum):
    """The ways a request can fail."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    THROTTLED = "throttled"
    DENIED = "denied"
    READ_ONLY = "read-only"
    GATED = "gated"
    NOT_FOUND = "not-found"
    EXISTS = "exists"
    NOT_A_DIRECTORY = "not-a-directory"
    IS_A_DIRECTORY = "is-a-directory"
    NOT_EMPTY = "not-empty"
    INTO_ITSELF = "into-itself"
    NAME_TOO_LONG = "name-too-long"
    BUDGET = "budget-spent"
    NO_SPACE = "no-space"
    TOO_LARGE = "too-large"
    CONFLICT = "conflict"
    PRECONDITION = "precondition-failed"
    KEY_REUSED = "key-reused"
    EXPIRED = "expired"
    REVOKED = "revoked"
    UNSUPPORTED = "unsupported"
    NOT_PERMITTED = "not-permitted"
    NO_ATTRIBUTE = "no-attribute"
    STALE = "stale"
    LOOP = "loop"
    TOO_MANY_LINKS = "too-many-links"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    CORRUPT = "corrupt"
    INTERNAL = "internal"


class Fault(Exception):
    """A request failed. `policy` is the position of the policy line that decided, when one did."""

    def __init__(self, kind: Kind, message: str, *, hint: str = "", policy: str = "", gate: str = "", wait: int = 0) -> None:
        """Say what happened (`message`), what to do next (`hint`), where it was decided (`policy`) and which gate waits (`gate`).

        `wait` is after how many seconds it makes sense to repeat the request, 0 where nothing is known of that.
        """
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.policy = policy
        self.gate = gate
        self.wait = wait
