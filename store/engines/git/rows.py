"""A working layer in memory: the rows of what was touched, over the tree of the head.

1. Pure: the tree reader is an argument. The caller holds the layer's lock around every call.
2. A directory's entries are those of its tree (`lower`) with its name rows laid over them; `NOTHING` hides one.
3. Whoever has a row is reached by rows: the directories above a touched node are touched themselves.
4. Rows of untouched nodes are made on demand; `apply` forgets the ones that a change makes wrong.
5. Dirty marks say what the next commit has to look at. What no commit can hold (below a ``.git`` folder) is parked when a commit
   has seen it, so that it is not looked at again until it moves to where commits hold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

from store.engines.git.caches import RecentMap
from store.engines.git.nodes import CLEAN, DIRTY, GONE, PARKED, NodeRow, inherited_row, root_row, stable_id
from store.errors import Stale
from store.model import ROOT, NodeId
from store.names import versionable
from store.trees import EMPTY, Listing, ReadTree, join_path

Place = tuple[NodeId, bytes]
"""A directory and a name in it."""

Item = TypeVar("Item")

_KEPT_ROWS = 100_000

_versionable = lru_cache(1 << 16)(versionable)


class NameRow(NamedTuple):
    """What stands under a name: a node or `NOTHING`, whether the head has something else there, and where it has what moved here."""

    node: NodeId
    dirty: int
    origin: bytes | None = None


NameRows = Mapping[Place, NameRow]
NodeRows = Mapping[NodeId, NodeRow]


class Rows:
    """The state of one working tree. A node that nobody touched is known once its name was looked up here."""

    def __init__(self, read_tree: ReadTree, tree: bytes, time_ns: int) -> None:
        """Start with nothing touched; untouched nodes carry the time `time_ns`."""
        self._read_tree = read_tree
        self.reset(tree, time_ns)
        self._seen: dict[NodeId, Place] = {}

    def reset(self, tree: bytes, time_ns: int) -> None:
        """Forget every row and lie over another tree; identities that were seen stay known."""
        self.tree = tree
        self.time_ns = time_ns
        self.names: dict[NodeId, dict[bytes, NameRow]] = {}
        self.nodes: dict[NodeId, NodeRow] = {}
        self.gone: set[NodeId] = set()
        self.hidden: set[Place] = set()
        self.dirty_names: set[Place] = set()
        self.dirty_nodes: set[NodeId] = set()
        self.parked_nodes: set[NodeId] = set()
        self.moved: set[Place] = set()
        self._places: dict[NodeId, tuple[Place, ...]] = {}
        self._odd_names: set[Place] = set()
        self._odd_nodes: set[NodeId] = set()
        self._untouched: RecentMap[NodeId, NodeRow] = RecentMap(_KEPT_ROWS)

    def find(self, node: NodeId) -> NodeRow:
        """Return the row of a node, touched or not. Raises `Stale`."""
        row = self.nodes.get(node) or self._untouched.get(node)
        return row if row is not None else self._find_untouched(node)

    def child(self, parent: NodeRow, name: bytes) -> NodeRow | None:
        """Return what `name` in a directory stands for, or None."""
        above = self.names.get(parent.id)
        if above is not None and (row := above.get(name)) is not None:
            return self.nodes.get(row.node)
        entry = self.below(parent).get(name)
        if entry is None:
            return None
        node = self._untouched_id(parent.id, name)
        found = self._untouched.get(node)
        if found is None:
            found = inherited_row(node, entry, self.time_ns)
            self._untouched.put(node, found)
            self._seen[node] = (parent.id, name)
        return found

    def below(self, directory: NodeRow) -> Listing:
        """Return the entries that a directory has in its tree; none when something else took its place and its identity."""
        return self._read_tree(directory.lower) if directory.is_directory and directory.lower is not None else EMPTY

    def children(self, directory: NodeRow) -> Iterator[tuple[bytes, NodeRow]]:
        """Yield every name of a directory with its node, in no order."""
        above = self.names.get(directory.id, {})
        for name in self.below(directory):
            if name not in above and (row := self.child(directory, name)) is not None:
                yield name, row
        for name, entry in above.items():
            if entry.node:
                yield name, self.nodes[entry.node]

    def has_children(self, directory: NodeRow) -> bool:
        """Tell whether the directory holds any name."""
        above = self.names.get(directory.id, {})
        return any(entry.node for entry in above.values()) or any(name not in above for name in self.below(directory))

    def places(self, node: NodeId) -> tuple[Place, ...]:
        """Return every place of a node: one, or more with hard links; none for the root and for a node that is gone."""
        if node in self.nodes:
            return self._places.get(node, ())
        seen = self._seen.get(node)
        return () if seen is None else (seen,)

    def path(self, node: NodeId) -> bytes:
        """Return one path of a node. Raises `Stale`."""
        parts: list[bytes] = []
        self.find(node)
        while node != ROOT:
            places = self.places(node)
            if not places:
                raise Stale(node, "it has no name any more")
            node, name = places[0]
            parts.append(name)
        return b"/".join(reversed(parts))

    def head_path(self, place: Place) -> bytes | None:
        """Return the path under which the head has what stands at a place, or None when it does not have it."""
        parts: list[bytes] = []
        while True:
            parent, name = place
            parts.append(name)
            entry = self.names.get(parent, {}).get(name)
            if entry is not None and entry.dirty:
                return None if entry.origin is None else b"/".join([entry.origin, *reversed(parts[:-1])])
            if parent == ROOT:
                return b"/".join(reversed(parts))
            place = self.places(parent)[0]

    def passed_over(self) -> Iterator[Place]:
        """Yield the places that no commit can hold by themselves: odd names, pipes and sockets."""
        for parent, name in self._odd_names:
            row = self.nodes.get(self.names[parent][name].node)
            if row is not None and row.kind <= 3 and not is_versioned(name, row):
                yield parent, name
        for node in self._odd_nodes:
            yield from self._places.get(node, ())

    def left_out(self) -> list[bytes]:
        """Return the paths that commits pass over, topmost only, ordered."""
        reach = Reach(self)
        return sorted(join_path(self.path(parent), name) for parent, name in self.passed_over() if reach.depth(parent) is not None)

    def below_rows(self, node: NodeId) -> Iterator[tuple[Place, NameRow]]:
        """Yield every name row below a directory, at any depth."""
        pending = [node]
        while pending:
            parent = pending.pop()
            for name, entry in self.names.get(parent, {}).items():
                yield (parent, name), entry
                if entry.node in self.names:
                    pending.append(entry.node)

    def apply(self, names: NameRows, nodes: NodeRows) -> None:
        """Take over changed rows: all of them, then the state is whole again."""
        for place, entry in names.items():
            self._apply_name(place, entry)
        for row in nodes.values():
            self._apply_node(row)

    def forget_untouched(self) -> None:
        """Forget what was derived from the tree below, because whole directories were replaced."""
        self._untouched = RecentMap(_KEPT_ROWS)

    def settle(self, tree: bytes) -> None:
        """Take over that a commit made `tree` of everything: no name is dirty any more; nodes that were come as rows of their own."""
        self.tree = tree
        for parent, name in self.dirty_names:
            self.names[parent][name] = self.names[parent][name]._replace(dirty=CLEAN, origin=None)
        self.dirty_names.clear()
        self.moved.clear()

    def forgettable(self) -> tuple[set[Place], set[NodeId]]:
        """Return what says nothing about the tree below: hidden names it does not have either, and nodes that are gone."""
        return {place for place in self.hidden if self.names[place[0]][place[1]].dirty == CLEAN}, set(self.gone)

    def discard(self, names: Iterable[Place], nodes: Iterable[NodeId]) -> None:
        """Drop rows that say nothing any more: hidden names that no tree holds, nodes that are gone."""
        for parent, name in names:
            entries = self.names[parent]
            if name in entries and not entries[name].node and entries[name].dirty == CLEAN:
                del entries[name]
                self.hidden.discard((parent, name))
        self.gone.difference_update(nodes)

    def _find_untouched(self, node: NodeId) -> NodeRow:
        if node == ROOT:
            return root_row(self.tree, self.time_ns)
        places = self._seen_above(node)
        directory, row = self.find(places[-1][0]), None
        for _, name in reversed(places):
            row = self.child(directory, name)
            if row is None:
                break
            directory = row
        if row is None or row.id != node:
            raise Stale(node, "it has no name any more")
        return row

    def _seen_above(self, node: NodeId) -> list[Place]:
        """Return the place of an untouched node and those of the directories above it, up to one whose row is at hand."""
        places: list[Place] = []
        while node != ROOT and node not in self.nodes and (not places or self._untouched.get(node) is None):
            place = self._seen.get(node)
            if place is None:
                raise Stale(node, "no such node")
            places.append(place)
            node = place[0]
        return places

    def _untouched_id(self, parent: NodeId, name: bytes) -> NodeId:
        node, salt = stable_id(parent, name), 0
        while node in self.nodes:
            salt += 1
            node = stable_id(parent, name, salt)
        return node

    def _apply_name(self, place: Place, entry: NameRow) -> None:
        parent, name = place
        entries = self.names.setdefault(parent, {})
        before = entries.get(name)
        entries[name] = entry
        if before is None:
            self._untouched.drop(stable_id(parent, name))
        elif before.node != entry.node:
            self._places[before.node] = _without(self._places.get(before.node, ()), place)
        if entry.node:
            self._places[entry.node] = (*_without(self._places.get(entry.node, ()), place), place)
        _mark(self.hidden, place, not entry.node)
        _mark(self.moved, place, entry.origin is not None)
        _mark(self.dirty_names, place, entry.dirty == DIRTY)
        _mark(self._odd_names, place, bool(entry.node) and not _versionable(name, symlink=True))

    def _apply_node(self, row: NodeRow) -> None:
        if row.kind == GONE:
            self.nodes.pop(row.id, None)
            self._places.pop(row.id, None)
        else:
            self.nodes[row.id] = row
        _mark(self.gone, row.id, row.kind == GONE)
        _mark(self.dirty_nodes, row.id, row.dirty == DIRTY and row.kind != GONE)
        _mark(self.parked_nodes, row.id, row.dirty == PARKED and row.kind != GONE)
        _mark(self._odd_nodes, row.id, row.kind > 3)


class Reach:
    """How deep directories lie, as far as commits reach; answers are kept, so use one while nothing changes."""

    def __init__(self, rows: Rows) -> None:
        """Answer for rows as they are now."""
        self._rows = rows
        self._depths: dict[NodeId, int | None] = {ROOT: 0}

    def depth(self, directory: NodeId) -> int | None:
        """Return how far below the root a directory lies, or None when it lies in something that commits pass over."""
        chain = []
        while directory not in self._depths:
            chain.append(directory)
            parent, name = self._rows.places(directory)[0]
            if not is_versioned(name, self._rows.find(directory)):
                self._depths[directory] = None
                chain.pop()
                break
            directory = parent
        depth = self._depths[directory]
        for passed in reversed(chain):
            depth = None if depth is None else depth + 1
            self._depths[passed] = depth
        return depth

    def holds(self, node: NodeId) -> bool:
        """Tell whether commits hold the node under at least one of its names."""
        row = self._rows.find(node)
        places = self._rows.places(node)
        return node == ROOT or any(is_versioned(name, row) and self.depth(parent) is not None for parent, name in places)


def is_versioned(name: bytes, row: NodeRow) -> bool:
    """Tell whether commits hold a node of this kind under this name."""
    return row.kind <= 3 and _versionable(name, symlink=row.is_symlink)


def _without(places: tuple[Place, ...], place: Place) -> tuple[Place, ...]:
    return tuple([other for other in places if other != place]) if place in places else places


def _mark(marks: set[Item], item: Item, marked: bool) -> None:
    if marked:
        marks.add(item)
    else:
        marks.discard(item)
