"""Open directories: a listing taken at the start and given out in pieces.

1. A listing is taken when reading starts at offset 0, so `rewinddir` sees what is there now.
2. The kernel caches the entries of a listing like lookups. A piece given out after anything changed is therefore checked
   entry by entry: a name that is gone is passed over, and attributes are those of now.
3. An offset is the position in the listing plus one. ``.`` and ``..`` are left to the caller's own knowledge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from interfaces.faults import Fault, Kind
from interfaces.port import Attributes, Workspace

Entry = tuple[bytes, Attributes, int]
"""A name, its attributes, and the offset after it."""


@dataclass(slots=True)
class Listing:
    """An open directory; `stamp` is the count of changes at which `names` was taken."""

    node: int
    names: Sequence[tuple[bytes, Attributes]] = ()
    stamp: int = -1


class Directories:
    """Every open directory of the mount."""

    def __init__(self, workspace: Workspace) -> None:
        """Start with none."""
        self._workspace = workspace
        self._numbers = count(1)
        self._open: dict[int, Listing] = {}

    def open(self, node: int) -> int:
        """Open a directory and return its number."""
        number = next(self._numbers)
        self._open[number] = Listing(node)
        return number

    def read(self, number: int, offset: int, changes: int) -> Iterator[Entry]:
        """Yield the entries from an offset on; `changes` counts what changed in the tree so far."""
        listing = self._open[number]
        if offset == 0 or listing.stamp < 0:
            listing.names, listing.stamp = self._workspace.list(listing.node), changes
        current = listing.stamp == changes
        for position in range(offset, len(listing.names)):
            name, attributes = listing.names[position]
            fresh = attributes if current else self._look_again(listing.node, name)
            if fresh is not None:
                yield name, fresh, position + 1

    def _look_again(self, directory: int, name: bytes) -> Attributes | None:
        try:
            return self._workspace.lookup(directory, name)
        except Fault as fault:
            if fault.kind is Kind.NOT_FOUND:
                return None
            raise

    def node(self, number: int) -> int:
        """Return which directory a number stands for."""
        return self._open[number].node

    def release(self, number: int) -> None:
        """Take a number out of use."""
        del self._open[number]
