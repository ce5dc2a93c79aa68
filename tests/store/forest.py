"""Content-addressed trees in memory, and strategies that draw them, for the tests of the rules over trees."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from store.trees import DIRECTORY, EXECUTABLE, FILE, SYMLINK, Listing, TreeEntry, walk_entries

Spec = dict[bytes, Any]
"""A directory as nested dicts: name -> Spec | TreeEntry."""


class Forest:
    """Keeps every tree written to it, and counts what is read."""

    def __init__(self) -> None:
        self.trees: dict[bytes, Listing] = {}
        self.reads = 0

    def read(self, content: bytes) -> Listing:
        self.reads += 1
        return self.trees[content]

    def write(self, listing: Listing) -> bytes:
        for name in listing:
            assert name
            assert b"\0" not in name
            assert b"/" not in name
        identity = hashlib.sha1(repr(sorted(listing.items())).encode(), usedforsecurity=False).digest()
        self.trees[identity] = dict(listing)
        return identity

    def plant(self, spec: Mapping[bytes, Any]) -> bytes:
        """Write a nested spec; strings of bytes stand for ordinary files with that content."""
        listing = {}
        for name, part in spec.items():
            if isinstance(part, TreeEntry):
                listing[name] = part
            elif isinstance(part, bytes):
                listing[name] = TreeEntry(FILE, part)
            else:
                listing[name] = TreeEntry(DIRECTORY, self.plant(part))
        return self.write(listing)

    def leaves(self, root: bytes) -> dict[bytes, TreeEntry]:
        return {path: entry for path, entry in walk_entries(self.read, root) if entry.mode != DIRECTORY}

    def directories(self, root: bytes) -> set[bytes]:
        return {path for path, entry in walk_entries(self.read, root) if entry.mode == DIRECTORY}

    def files(self, root: bytes) -> dict[bytes, bytes]:
        return {path: entry.content for path, entry in self.leaves(root).items()}


leaf_entries = st.builds(TreeEntry, st.sampled_from([FILE, FILE, EXECUTABLE, SYMLINK]), st.sampled_from([b"one", b"two", b"three"]))
names = st.sampled_from([b"a", b"b", b"c", b"\xff"])
specs: st.SearchStrategy[Spec] = st.recursive(
    st.dictionaries(names, leaf_entries, max_size=4),
    lambda below: st.dictionaries(names, leaf_entries | below, max_size=4),
    max_leaves=12,
)
