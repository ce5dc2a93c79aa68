"""The documents that doors keep across requests, processes and restarts: `interfaces.port.Notes` over trust's documents."""

from __future__ import annotations

from collections.abc import Sequence

from interfaces.port import Document
from nasd.faults import guarded
from trust.errors import Outdated, Taken, Unknown
from trust.service import Trust


class DoorNotes:
    """The documents of one door. Any thread may call."""

    def __init__(self, trust: Trust, door: str) -> None:
        """Keep documents of the kind ``door-<door>``."""
        self._trust = trust
        self._kind = f"door-{door}"

    @guarded
    def find(self, key: str) -> tuple[int, Document]:
        """Return version and body of a document; (0, {}) when there is none."""
        try:
            found = self._trust.document(self._kind, key)
        except Unknown:
            return 0, {}
        return found.version, dict(found.body)

    @guarded
    def put(self, key: str, body: Document, expected: int) -> bool:
        """Store a body when the version is `expected`, and tell whether it was."""
        try:
            self._trust.put_document(self._kind, key, body, expected)
        except (Outdated, Taken):
            return False
        return True

    @guarded
    def remove(self, key: str, expected: int) -> bool:
        """Remove a document when its version is `expected`, and tell whether it was."""
        return self._trust.remove_document(self._kind, key, expected)

    @guarded
    def keys(self, prefix: str) -> Sequence[str]:
        """Return the keys that start with `prefix`, ordered."""
        return self._trust.document_keys(self._kind, prefix)
