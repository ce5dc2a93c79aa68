"""One change of a working layer before it is made: the rows that will be different, over the rows as they are.

1. Pure: an edit reads `Rows` and holds what would change; writing it is the layer's business.
2. Touching a node gives rows to the directories above it, so that rows are always reached by rows.
3. What an edit holds is seen by its own later reads.
4. A name that goes leaves `NOTHING` behind, also where no tree has it: other processes learn of the removal from that row.
5. A directory's times change with its names; a node's ctime with its own names and attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from store.engines.git.nodes import CLEAN, DIRTY, NOTHING, PARKED, NodeRow, gone_row
from store.engines.git.rows import NameRow, Place, Reach, Rows, is_versioned
from store.model import NodeId


class Edit:
    """The rows that one operation changes."""

    def __init__(self, rows: Rows, now: int) -> None:
        """Start with nothing changed at `now`, in nanoseconds."""
        self.now = now
        self.names: dict[Place, NameRow] = {}
        self.nodes: dict[NodeId, NodeRow] = {}
        self.released: list[NodeRow] = []
        self.dropped: list[int] = []
        self.drafts: list[tuple[bytes, bytes]] = []
        self._rows = rows
        self._places: dict[NodeId, tuple[Place, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self.names or self.nodes)

    def dirties(self) -> bool:
        """Tell whether the edit gives the next commit something to look at."""
        rows: Iterator[NameRow | NodeRow] = chain(self.names.values(), self.nodes.values())
        return any(row.dirty == DIRTY for row in rows)

    def find(self, node: NodeId) -> NodeRow:
        """Return the row of a node as it will be. Raises `Stale`."""
        return self.nodes.get(node) or self._rows.find(node)

    def child(self, parent: NodeRow, name: bytes) -> NodeRow | None:
        """Return what `name` will stand for."""
        entry = self.names.get((parent.id, name))
        if entry is None:
            found = self._rows.child(parent, name)
            return None if found is None else self.nodes.get(found.id, found)
        return self.find(entry.node) if entry.node else None

    def has_children(self, directory: NodeRow) -> bool:
        """Tell whether a directory will hold any name."""
        mine = {name: entry.node for (parent, name), entry in self.names.items() if parent == directory.id}
        return any(mine.values()) or any(name not in mine for name, _ in self._rows.children(directory))

    def touch(self, node: NodeId) -> NodeRow:
        """Give a node and every directory above it a row, and return the node's."""
        row = self.nodes.get(node)
        if row is None:
            for above in reversed(self._untouched_above(node)):
                self.nodes[above] = self._rows.find(above)
            row = self.nodes[node] = self._rows.find(node)
        return row

    def put(self, row: NodeRow) -> None:
        """Take over the row of a node that is touched already or made just now."""
        self.nodes[row.id] = row

    def alter(self, node: NodeId, **fields: object) -> NodeRow:
        """Touch a node, change fields and its ctime, and return its row."""
        row = self.touch(node).at(self.now)
        if fields:
            row = row._replace(**fields)  # type: ignore[arg-type]
        self.nodes[node] = row
        return row

    def attach(self, parent: NodeId, name: bytes, node: NodeId, origin: bytes | None = None) -> None:
        """Put a node under a name, which nothing holds any more; `origin` is the path under which the head has it."""
        self._stamp(parent)
        self.names[parent, name] = NameRow(node, DIRTY, origin)
        self._places[node] = (*self.places(node), (parent, name))

    def detach(self, parent: NodeId, name: bytes, node: NodeId) -> None:
        """Take a node's name away; the node stays, nameless if that was its last one."""
        directory = self._stamp(parent)
        hides = name in self._rows.below(directory)
        self.names[parent, name] = NameRow(NOTHING, DIRTY if hides else CLEAN)
        self._places[node] = tuple([place for place in self.places(node) if place != (parent, name)])

    def release(self, node: NodeId) -> None:
        """Let a node go when it has no name left; otherwise only its ctime changes."""
        row = self.alter(node)
        if self.places(node):
            return
        self.released.append(row)
        self.drop_upper(row)
        self._clear_names(node)
        if node in self._rows.nodes:
            self.nodes[node] = gone_row(node)
        else:
            del self.nodes[node]

    def move(self, source: Place, target: Place, node: NodeId) -> None:
        """Take a node from one place to another that is free."""
        origin = self._leave(source, node)
        self.detach(*source, node)
        self.attach(*target, node, origin)

    def swap(self, one: Place, first: NodeId, other: Place, second: NodeId) -> None:
        """Have two nodes take each other's place."""
        origin, other_origin = self._leave(one, first), self._leave(other, second)
        self.detach(*one, first)
        self.detach(*other, second)
        self.attach(*other, first, origin)
        self.attach(*one, second, other_origin)

    def drop_upper(self, row: NodeRow) -> None:
        """Have the upper file of a row removed once the edit is made."""
        if row.upper is not None:
            self.dropped.append(row.upper)

    def places(self, node: NodeId) -> tuple[Place, ...]:
        """Return every place the node will have."""
        places = self._places.get(node)
        return self._rows.places(node) if places is None else places

    def _clear_names(self, directory: NodeId) -> None:
        """Have no name of a directory that is gone stay dirty."""
        if directory not in self._rows.names and not self.find(directory).is_directory:
            return
        names = {name for name, entry in self._rows.names.get(directory, {}).items() if entry.dirty}
        names |= {name for parent, name in self.names if parent == directory}
        self.names.update({(directory, name): NameRow(NOTHING, CLEAN) for name in names})

    def _leave(self, place: Place, node: NodeId) -> bytes | None:
        """Prepare a node to move away from a place and return the path under which the head has it there."""
        row = self.alter(node)
        if not is_versioned(place[1], row) or Reach(self._rows).depth(place[0]) is None:
            self._wake(node)
        return self._rows.head_path(place)

    def _wake(self, node: NodeId) -> None:
        """Have the next commit look at a node that may move to where commits look, and at everything below it."""
        self.put(self.find(node)._replace(dirty=DIRTY))
        for place, entry in self._rows.below_rows(node):
            if entry.dirty == PARKED:
                self.names[place] = entry._replace(dirty=DIRTY)
            if entry.node and (row := self.find(entry.node)).dirty == PARKED:
                self.put(row._replace(dirty=DIRTY))

    def _stamp(self, directory: NodeId) -> NodeRow:
        row = self.touch(directory).at(self.now, self.now)
        self.nodes[directory] = row
        return row

    def _untouched_above(self, node: NodeId) -> list[NodeId]:
        """Return the directories above a node that have no row yet, nearest first, and give each its name."""
        found: list[NodeId] = []
        while node not in self._rows.nodes and (places := self._rows.places(node)):
            self.names.setdefault(places[0], NameRow(node, CLEAN))
            node = places[0][0]
            if node not in self._rows.nodes and node not in self.nodes:
                found.append(node)
        return found
