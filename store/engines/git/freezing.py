"""From a working layer to a tree: which directories a commit has to write, what it writes, and what the rows say afterwards.

1. Pure: the content of files comes from `entry_of`, objects go to `add`; the caller keeps the rows from changing meanwhile.
2. Only directories above something dirty are written, deepest first, each once. A directory as the head has it is not written again.
3. What no commit can hold is parked: its rows stay, are not looked at again, and say that the head does not have them.
4. Renames are what the rows remember, never a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from store.engines.git.nodes import CLEAN, PARKED, NodeRow
from store.engines.git.objects import EMPTY_TREE, GitObject, Kind, encode_tree, make_object
from store.engines.git.rows import NameRow, Place, Reach, Rows, is_versioned
from store.model import ROOT, NodeId
from store.renames import simplify_renames
from store.trees import DIRECTORY, Listing, TreeEntry, join_path

EntryOf = Callable[[NodeRow], TreeEntry]
"""Returns the entry of a dirty file or symlink, its content stored."""


@dataclass(slots=True)
class Frozen:
    """A working layer as a tree. `names` and `nodes` are the rows that differ once a commit holds it."""

    tree: bytes = EMPTY_TREE
    names: dict[Place, NameRow] = field(default_factory=dict)
    nodes: dict[NodeId, NodeRow] = field(default_factory=dict)
    renames: dict[bytes, bytes] = field(default_factory=dict)


def freeze_rows(rows: Rows, entry_of: EntryOf, add: Callable[[GitObject, Listing], None]) -> Frozen:
    """Return the tree of a layer; `add` gets every directory that was not written before, with its listing."""
    freezing = _Freezing(rows, entry_of, add)
    freezing.collect()
    freezing.write()
    freezing.park()
    return freezing.frozen


class _Freezing:
    """One layer on its way to a tree."""

    def __init__(self, rows: Rows, entry_of: EntryOf, add: Callable[[GitObject, Listing], None]) -> None:
        self.frozen = Frozen(rows.tree)
        self._rows = rows
        self._entry_of = entry_of
        self._add = add
        self._reach = Reach(rows)
        self._touched: dict[int, dict[NodeId, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        self._parked: list[NodeRow] = []

    def collect(self) -> None:
        """Find the directories that have to be written, and in each the names that have to be looked at."""
        for parent, name in self._rows.dirty_names:
            self._touch_name(parent, name)
        for node in self._rows.dirty_nodes:
            row = self._rows.nodes[node]
            if not self._reach.holds(node):
                self._parked.append(row)
            elif row.is_directory:
                self._touch_directory(node)
            else:
                self._touch_places(node)

    def write(self) -> None:
        """Write the directories, deepest first, and settle the rows of what they hold."""
        for depth in sorted(self._touched, reverse=True):
            for directory, names in self._touched[depth].items():
                self._write_directory(self._rows.find(directory), names)
        for place in self._rows.dirty_names:
            self.frozen.names[place] = self._settled_name(place)
        self.frozen.renames = simplify_renames(dict(self._origins()))

    def park(self) -> None:
        """Settle the rows of what no commit can hold; of a file that is held elsewhere, the names that are not."""
        for row in self._parked:
            self.frozen.nodes[row.id] = row._replace(dirty=PARKED)
        for node in self._rows.dirty_nodes:
            places = self._rows.places(node)
            settled = [(place, self._settled_name(place)) for place in places] if len(places) > 1 else []
            self.frozen.names.update((place, entry) for place, entry in settled if entry.dirty == PARKED)

    def _touch_name(self, parent: NodeId, name: bytes) -> None:
        if self._reach.depth(parent) is not None:
            self._touch_directory(parent).add(name)

    def _touch_places(self, node: NodeId) -> None:
        for parent, name in self._rows.places(node):
            self._touch_name(parent, name)

    def _touch_directory(self, directory: NodeId) -> set[bytes]:
        """Have a directory written, and those above it; return the names to look at in it."""
        depth = self._reach.depth(directory)
        assert depth is not None
        names = known = self._touched[depth].get(directory)
        if names is None:
            names = self._touched[depth][directory]
        while known is None and directory != ROOT:
            directory, name = self._rows.places(directory)[0]
            depth -= 1
            known = self._touched[depth].get(directory)
            self._touched[depth][directory].add(name)
        return names

    def _write_directory(self, directory: NodeRow, names: set[bytes]) -> None:
        listing = dict(self._rows.below(directory))
        for name in names:
            entry = self._entry(directory, name)
            if entry is None:
                listing.pop(name, None)
            else:
                listing[name] = entry
        written = make_object(Kind.TREE, encode_tree(listing))
        if written.oid != directory.lower:
            self._add(written, listing)
        if directory.id == ROOT:
            self.frozen.tree = written.oid
        if directory.id in self._rows.nodes:
            self.frozen.nodes[directory.id] = directory._replace(lower=written.oid, dirty=CLEAN)

    def _entry(self, directory: NodeRow, name: bytes) -> TreeEntry | None:
        """Return what a name stands for in the commit; the directories below are written already."""
        row = self._rows.child(directory, name)
        if row is None or not is_versioned(name, row):
            return None
        if row.is_directory:
            written = self.frozen.nodes.get(row.id, row)
            return TreeEntry(DIRECTORY, written.lower or EMPTY_TREE)
        mode = row.git_mode
        settled = self.frozen.nodes.get(row.id)
        if settled is not None and settled.lower is not None and mode is not None:
            return TreeEntry(mode, settled.lower)
        if row.lower is not None and row.id not in self._rows.dirty_nodes and mode is not None:
            return TreeEntry(mode, row.lower)
        entry = self._entry_of(row)
        self.frozen.nodes[row.id] = row._replace(lower=entry.content, dirty=CLEAN)
        return entry

    def _origins(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the path of everything that moved and is held, and where the head has it."""
        for parent, name in self._rows.moved:
            entry = self._rows.names[parent][name]
            if entry.origin is not None and self._settled_name((parent, name)).dirty == CLEAN:
                yield join_path(self._rows.path(parent), name), entry.origin

    def _settled_name(self, place: Place) -> NameRow:
        parent, name = place
        entry = self._rows.names[parent][name]
        reached = self._reach.depth(parent) is not None
        held = reached and (not entry.node or is_versioned(name, self._rows.nodes[entry.node]))
        return entry._replace(dirty=CLEAN if held else PARKED, origin=None)
