"""Credentials that were recognised before, so that the next request with the same costs a hash.

1. An entry counts for one epoch: any change to leases, principals, tokens or the policy, in any process, ends all of them.
2. An entry ends when the clock alone could change the answer. What was refused is not kept.
3. Kept by the SHA-256 of what was presented, never by the thing itself.
4. Bounded: at `limit` entries all are dropped, which costs one recognition each.
5. Any thread may call: entries are immutable and a lost race costs a recognition.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Generic, TypeVar

from trust.model import Epoch

_Answer = TypeVar("_Answer")


class PresentedCache(Generic[_Answer]):
    """Keeps what credentials stand for."""

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._epoch: Epoch | None = None
        self._entries: dict[bytes, tuple[_Answer, int]] = {}

    def find(self, epoch: Epoch, digest: bytes, now: int) -> _Answer | None:
        """Return the answer for the digest of a credential, when one is kept that still counts."""
        if epoch != self._epoch:
            return None
        entry = self._entries.get(digest)
        return entry[0] if entry is not None and now < entry[1] else None

    def keep(self, epoch: Epoch, digest: bytes, answer: _Answer, until: int) -> None:
        """Keep an answer that was found under an epoch; `until` is the first moment at which it may be another."""
        if epoch != self._epoch or len(self._entries) >= self._limit:
            self._entries, self._epoch = {}, epoch
        self._entries[digest] = (answer, until)


def digest_of(kind: str, *parts: str) -> bytes:
    """Return what a credential of these parts is kept by; credentials of different kinds never meet."""
    return sha256("\0".join((kind, *parts)).encode("utf-8", "surrogatepass")).digest()
