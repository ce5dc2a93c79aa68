"""Making a working layer equal to a tree, path by path, in one edit.

1. What is equal already is not touched: a directory nobody touched is compared by its content alone, so the cost is what differs.
2. Nodes stay where the kind agrees and no other name of theirs would change with them. What is new is laid in whole: a directory
   by its content, without a row for anything in it.
3. What no commit can hold stays where it is, and so does a directory that holds some.
"""

from __future__ import annotations

from store.engines.git.edits import Edit
from store.engines.git.hashing import peek_entry
from store.engines.git.layer import Layer
from store.engines.git.nodes import CLEAN, DIRTY, PARKED, NodeRow, inherited_row
from store.engines.git.rows import NameRow, Place, Rows, is_versioned
from store.model import ROOT, NodeId
from store.trees import DIRECTORY, EMPTY, ReadTree, TreeEntry, find_entry, split_path


def restore_paths(layer: Layer, edit: Edit, tree: bytes, paths: tuple[bytes, ...]) -> None:
    """Put paths of a layer back to what a tree holds there, removing what it does not hold; the empty path is everything."""
    restoring = _Restoring(layer, edit)
    for path in paths:
        restoring.put(path, find_entry(layer.around.vault.tree, tree, path))
    layer.rows.forget_untouched()


def rebase_rows(rows: Rows, read: ReadTree, tree: bytes) -> tuple[dict[Place, NameRow], dict[NodeId, NodeRow]]:
    """Return the rows of a layer that was made equal to `tree`, as they are when `tree` is the head's.

    Only a directory that stays because of what commits pass over is not in the tree: it is dirty, like everything else that is not.
    """
    names: dict[Place, NameRow] = {}
    nodes: dict[NodeId, NodeRow] = {}
    pending: list[tuple[NodeId, TreeEntry | None]] = [(ROOT, TreeEntry(DIRECTORY, tree))]
    while pending:
        directory, found = pending.pop()
        lower = found.content if found is not None and found.mode == DIRECTORY else None
        listing = EMPTY if lower is None else read(lower)
        nodes[directory] = rows.nodes[directory]._replace(lower=lower, dirty=DIRTY if found is None else CLEAN)
        for name, entry in rows.names.get(directory, {}).items():
            row, wanted = rows.nodes.get(entry.node), listing.get(name)
            mark = names[directory, name] = NameRow(entry.node, _mark_name(name, row, wanted))
            if row is not None and row.is_directory and mark.dirty != PARKED:
                pending.append((row.id, wanted if mark.dirty == CLEAN else None))
            elif row is not None and mark.dirty == CLEAN:
                nodes[row.id] = row._replace(dirty=CLEAN)
    return names, nodes


def _mark_name(name: bytes, row: NodeRow | None, entry: TreeEntry | None) -> int:
    """Return the mark of a name whose node is as the tree's entry has it, unless it is of another kind."""
    if row is None:
        return CLEAN if entry is None else DIRTY
    if not is_versioned(name, row):
        return PARKED
    return CLEAN if entry is not None and inherited_row(row.id, entry, 0).kind == row.kind else DIRTY


class _Restoring:
    """One edit on its way to a tree."""

    def __init__(self, layer: Layer, edit: Edit) -> None:
        self._layer = layer
        self._rows = layer.rows
        self._edit = edit
        self._tree = layer.around.vault.tree

    def put(self, path: bytes, entry: TreeEntry | None) -> None:
        """Make one path equal to an entry; None removes it."""
        if not path:
            self._put_below(self._edit.find(ROOT), entry)
            return
        parent, name = split_path(path)
        directory = self._directory(parent, make=entry is not None)
        if directory is not None:
            self._put_name(directory, name, entry)

    def _directory(self, path: bytes, *, make: bool) -> NodeRow | None:
        directory = self._edit.find(ROOT)
        for name in path.split(b"/") if path else ():
            below = self._edit.child(directory, name)
            if below is None or not below.is_directory:
                if not make:
                    return None
                self._put_name(directory, name, TreeEntry(DIRECTORY, self._layer.around.vault.empty_tree))
                below = self._edit.child(directory, name)
            if below is None:
                return None
            directory = below
        return directory

    def _put_name(self, directory: NodeRow, name: bytes, entry: TreeEntry | None) -> None:
        row = self._edit.child(directory, name)
        if row is not None and entry is not None and inherited_row(row.id, entry, 0).kind == row.kind and self._is_own(row, entry):
            self._put_node(row, entry, self._untouched_entry(directory, name, row))
            return
        if row is not None and not self._remove((directory.id, name), row):
            return
        if entry is not None:
            node = inherited_row(self._layer.fresh_id(), entry, self._edit.now)
            self._edit.put(node._replace(dirty=DIRTY))
            self._edit.attach(directory.id, name, node.id)

    def _is_own(self, row: NodeRow, entry: TreeEntry) -> bool:
        """Tell whether a node can take over an entry: it has it, or no other name that would change with it."""
        if row.is_directory or len(self._edit.places(row.id)) == 1:
            return True
        return entry == peek_entry(self._layer, row, {})

    def _put_node(self, row: NodeRow, entry: TreeEntry, current: TreeEntry | None) -> None:
        if current == entry:
            return
        if row.is_directory:
            self._put_below(row, entry)
            return
        self._edit.drop_upper(row)
        mode = inherited_row(row.id, entry, 0).mode
        kept = row.mode if bool(row.mode & 0o100) == bool(mode & 0o100) else row.mode ^ 0o111
        fields = {"lower": entry.content, "upper": None, "target": None, "size": None, "mode": kept, "dirty": DIRTY, "content": None}
        self._edit.alter(row.id, mtime_ns=self._edit.now, **fields)

    def _untouched_entry(self, directory: NodeRow, name: bytes, row: NodeRow) -> TreeEntry | None:
        """Return the entry of a node as the tree below has it, when nothing can have changed it since; else None."""
        if row.id in self._edit.nodes or row.dirty or (row.is_directory and row.id in self._rows.nodes):
            return None
        entry = self._rows.below(directory).get(name)
        if row.id not in self._rows.nodes:
            return entry
        return entry if entry is not None and (entry.mode, entry.content) == (row.git_mode, row.lower) else None

    def _put_below(self, directory: NodeRow, entry: TreeEntry | None) -> None:
        listing = EMPTY if entry is None else self._tree(entry.content)
        names = set(self._rows.names.get(directory.id, ()))
        if entry is None or directory.lower != entry.content:
            names.update(self._rows.below(directory), listing)
        for name in sorted(names, key=lambda name: (name in listing, name)):  # a name that goes leaves its node to one that stays
            row, wanted = self._edit.child(directory, name), listing.get(name)
            if wanted is not None or (row is not None and is_versioned(name, row)):
                self._put_name(directory, name, wanted)

    def _remove(self, place: Place, row: NodeRow) -> bool:
        """Take a name away; tell whether it is gone. A directory that holds what commits pass over stays, emptied of the rest."""
        if row.is_directory and (row.id in self._rows.nodes or row.id in self._edit.nodes):
            self._put_below(row, None)
            if self._edit.has_children(row):
                return False
        self._edit.touch(row.id)
        self._edit.detach(*place, row.id)
        self._edit.release(row.id)
        return True
