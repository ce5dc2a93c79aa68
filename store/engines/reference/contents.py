"""Content by identity: blobs and directory listings, each kept once.

1. Equal content has equal identity; nothing is ever removed.
"""

from __future__ import annotations

import hashlib

from store.model import ContentId, EntryKind, Side
from store.trees import DIRECTORY, EXECUTABLE, SYMLINK, Listing, TreeEntry

_KINDS = {DIRECTORY: EntryKind.DIRECTORY, SYMLINK: EntryKind.SYMLINK}


class Contents:
    """Every blob and listing of one engine."""

    def __init__(self) -> None:
        self._blobs: dict[bytes, bytes] = {}
        self._trees: dict[bytes, Listing] = {}

    def write_blob(self, data: bytes) -> bytes:
        """Keep a blob and return its identity."""
        identity = blob_identity(data)
        self._blobs[identity] = data
        return identity

    def read_blob(self, identity: bytes) -> bytes:
        """Return a blob."""
        return self._blobs[identity]

    def write_tree(self, listing: Listing) -> bytes:
        """Keep a listing and return its identity."""
        identity = hashlib.sha256(b"tree" + repr(sorted(listing.items())).encode()).digest()
        self._trees[identity] = dict(listing)
        return identity

    def read_tree(self, identity: bytes) -> Listing:
        """Return a listing."""
        return self._trees[identity]

    def describe(self, entry: TreeEntry | None) -> Side | None:
        """Return an entry as callers see it."""
        if entry is None:
            return None
        kind = _KINDS.get(entry.mode, EntryKind.FILE)
        size = None if kind is EntryKind.DIRECTORY else len(self._blobs[entry.content])
        return Side(kind, entry.mode == EXECUTABLE, ContentId(entry.content.hex()), size)


def blob_identity(data: bytes | bytearray) -> bytes:
    """Return the identity of a blob."""
    return hashlib.sha256(b"blob" + data).digest()
