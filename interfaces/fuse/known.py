"""What the kernel knows of us: which nodes it holds, how often it was told, and what about them matters later.

1. Every reply that carries a node counts once; `forget` gives counts back; at zero the kernel may not name the node any more.
2. The node numbers are the workspace's own, so nothing else hangs on a count: the table exists to invalidate what is cached.
3. Used by one thread at a time: the one that answers the kernel.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable

from interfaces.fuse.attributes import has_set_id
from interfaces.port import ROOT, Attributes

LARGE = 1 << 20
"""From this size on, opening or first touching a file may take long enough to deserve a thread, bytes."""

_INTERESTING = stat.S_ISUID | stat.S_ISGID


class Known:
    """The kernel's view of our nodes."""

    def __init__(self, default_gid: int) -> None:
        """Start with the root, which the kernel holds without being told."""
        self._counts: dict[int, int] = {ROOT: 1}
        self._default_gid = default_gid
        self.large: set[int] = set()
        self.set_id: set[int] = set()
        self._groups: dict[int, int] = {}

    def __contains__(self, node: int) -> bool:
        return node in self._counts

    def nodes(self) -> list[int]:
        """Return every node the kernel holds, the longest known first."""
        return list(self._counts)

    def count(self, attributes: Attributes) -> None:
        """Note that a reply hands the kernel one more reference to the node."""
        node = attributes.node
        self._counts[node] = self._counts.get(node, 0) + 1
        self.note(attributes)

    def note(self, attributes: Attributes) -> None:
        """Note what a reply says of a node, without a reference."""
        node, mode = attributes.node, attributes.st_mode
        if attributes.size >= LARGE:
            self.large.add(node)
        else:
            self.large.discard(node)
        if mode & _INTERESTING or node in self.set_id or node in self._groups:
            self._note_set_id(node, mode, attributes.gid)

    def _note_set_id(self, node: int, mode: int, gid: int | None) -> None:
        (self.set_id.add if has_set_id(mode) else self.set_id.discard)(node)
        if stat.S_ISDIR(mode) and mode & stat.S_ISGID:
            self._groups[node] = self._default_gid if gid is None else gid
        else:
            self._groups.pop(node, None)

    def inherited_group(self, directory: int) -> int | None:
        """Return the group that new entries of a set-group-id directory get; None for any other directory."""
        return self._groups.get(directory)

    def forget(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Take back references: pairs of a node and how many."""
        for node, count in pairs:
            left = self._counts.get(node, 0) - count
            if left > 0 or node == ROOT:
                self._counts[node] = max(left, 1)
            else:
                self._drop(node)

    def _drop(self, node: int) -> None:
        self._counts.pop(node, None)
        self.large.discard(node)
        self.set_id.discard(node)
        self._groups.pop(node, None)
