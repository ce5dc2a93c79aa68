"""The objects of one commit on their way to disk.

1. What is small goes into the journal, within the transaction that moves the branch. What is more than a few megabytes goes into a
   pack of its own, which is on stable storage when `finish` returns.
2. Content from 8 MiB on (and any file that could be taken for a pointer) goes to the store of large content; the tree gets a pointer.
3. Nothing is held in memory beyond the few megabytes and one small file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from store.engines.git.large import LargeStore, Pointer, belongs, encode_pointer
from store.engines.git.objects import GitObject, Kind, make_object
from store.engines.git.packs import PackWriter, Sync
from store.engines.git.steps import step
from store.engines.git.vault import Vault

_JOURNAL_BYTES = 4 << 20
_PIECE = 1 << 20


class Harvest:
    """Collects objects, and stores them."""

    def __init__(self, vault: Vault, packs: Path, large: LargeStore, *, sync: Sync) -> None:
        """Write packs into the folder `packs`."""
        self.pointers: dict[bytes, Pointer] = {}
        self._vault = vault
        self._packs = packs
        self._large = large
        self._sync = sync
        self._drafts: set[bytes] = set()
        self._journal: dict[bytes, GitObject] = {}
        self._bytes = 0
        self._pack: PackWriter | None = None

    def add(self, item: GitObject) -> bytes:
        """Take an object and return its identity."""
        if self._pack is not None:
            self._pack.add(item)
        elif item.oid not in self._journal:
            self._journal[item.oid] = item
            self._bytes += len(item.data)
            if self._bytes > _JOURNAL_BYTES:
                self._spill()
        return item.oid

    def add_below(self, branch: int, oid: bytes) -> bytes:
        """Take the blob below a file when it is a draft of the branch; any other is stored already. Returns its identity."""
        if oid not in self._drafts and (draft := self._vault.draft(branch, oid)) is not None:
            self._drafts.add(self.add(draft))
        return oid

    def add_file(self, descriptor: int, size: int) -> bytes:
        """Take the content of a file, which nobody changes meanwhile, and return the identity that a tree gives it."""
        if not belongs(descriptor, size):
            return self.add(make_object(Kind.BLOB, os.pread(descriptor, size, 0)))
        step("commit: store large content")
        pointer = self._large.put(descriptor)
        blob = make_object(Kind.BLOB, encode_pointer(pointer))
        if blob.oid not in self.pointers and self._vault.pointer(blob.oid) is None and self._vault.has(blob.oid):
            return self._spill().add_stream(Kind.BLOB, size, _pieces(descriptor, size))
        self.pointers[blob.oid] = pointer
        return self.add(blob)

    def flush(self) -> None:
        """Put what is packed on stable storage; later objects go into the journal again."""
        if self._pack is not None:
            step("commit: finish pack")
            self._pack.finish()
            self._pack = None

    def finish(self) -> list[GitObject]:
        """Put what is packed on stable storage and return the rest, for the transaction."""
        self.flush()
        return list(self._journal.values())

    def abort(self) -> None:
        """Drop what was not finished."""
        if self._pack is not None:
            self._pack.abort()
            self._pack = None

    def _spill(self) -> PackWriter:
        if self._pack is None:
            self._pack = PackWriter(self._packs, sync=self._sync)
        for item in self._journal.values():
            self._pack.add(item)
        self._journal.clear()
        self._bytes = 0
        return self._pack


def _pieces(descriptor: int, size: int) -> Iterator[bytes]:
    position = 0
    while position < size and (piece := os.pread(descriptor, min(_PIECE, size - position), position)):
        position += len(piece)
        yield piece
