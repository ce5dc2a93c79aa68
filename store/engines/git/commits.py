"""Commits: a working layer is frozen, written, and the branch moves, in one transaction.

1. Contents that have rested are hashed while everybody keeps writing. Then the fence closes: what changed since is hashed again, the trees
   above it are written, and the transaction moves the head, keeps the objects and settles the rows. Then the fence opens.
2. A file counts as unchanged since it was hashed when its size and times are the same and it had rested before the hashing began;
   a clock tick's worth of doubt means hashing it again.
3. The commit is acknowledged when the log is on stable storage; commits of several branches share that sync.
4. Upper files stay where they are and become clean. What they hold is in the objects too, so they need no sync of their own.
5. Names that were hidden for two commits are forgotten; whoever saw neither of them reads everything again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import apsw

from store.diff import Difference, diff_trees
from store.engines.git.content import disk_errors
from store.engines.git.drafts import drop_drafts
from store.engines.git.edits import Edit
from store.engines.git.freezing import Frozen, freeze_rows
from store.engines.git.harvest import Harvest
from store.engines.git.hashing import Hashed, peek_entry, record_sizes, sign_content, store_content, store_entry
from store.engines.git.large import LargeStore, Pointer
from store.engines.git.layer import Layer, Surroundings
from store.engines.git.layers import Layers
from store.engines.git.nodes import CLEAN, DIRTY
from store.engines.git.objects import GitObject, compose_commit
from store.engines.git.restoring import rebase_rows, restore_paths
from store.engines.git.rows import NameRows, NodeRows, Reach
from store.engines.git.steps import step
from store.errors import Moved
from store.model import Change, CommitId, Committed, NodeId, Note, Version
from store.names import find_twins
from store.renames import Renames
from store.trees import DIRECTORY, EMPTY, Listing, ReadTree, join_path

_HEAD = "SELECT head FROM branch WHERE id = ?"
_PUT_OBJECT = "INSERT OR IGNORE INTO object (oid, kind, data) VALUES (?, ?, ?)"
_PUT_LARGE = "INSERT OR IGNORE INTO large VALUES (?, ?, ?)"
_PUT_RENAME = "INSERT OR REPLACE INTO rename VALUES (?, ?, ?, ?)"
_MOVE = "UPDATE branch SET head = ?, tree = ?, version = ?, seal = ?, swept = max(swept, ?), dirty = 0 WHERE id = ? AND head = ?"
_MOVE_ONLY = "UPDATE branch SET head = ?, tree = ? WHERE id = ? AND head = ?"
_CLEAN_NAME = "UPDATE name SET dirty = 0, origin = NULL WHERE branch = ? AND parent = ? AND name = ?"
_MARK_NAME = "UPDATE name SET dirty = ?, origin = NULL, rev = ? WHERE branch = ? AND parent = ? AND name = ?"
_SETTLE_NODE = (
    "UPDATE node SET lower = ?, size = ?, mtime_ns = ?, ctime_ns = ?, dirty = ?, content = ?, stamped_ns = ?, rev = ?"
    " WHERE branch = ? AND id = ?"
)
_FRESHEN = "UPDATE branch SET version = version + 1, seal = version + 1, swept = version + 1, inherited_ns = ? WHERE id = ?"
_RELOAD = "UPDATE branch SET version = ?1, seal = ?1, swept = ?1, dirty = ?2 WHERE id = ?3"
_FORGET_NAME = "DELETE FROM name WHERE branch = ? AND parent = ? AND name = ? AND node = 0 AND dirty = 0 AND rev <= ?"
_FORGET_NODE = "DELETE FROM node WHERE branch = ? AND id = ? AND kind = 0 AND rev <= ?"

_RESTED_NS = 20_000_000
_WORTHWHILE = 64
_WORTHWHILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Move:
    """A branch's way from one head to another, with what the transaction has to keep for it."""

    name: str
    head: bytes
    commit: bytes
    tree: bytes
    objects: Sequence[GitObject] = ()
    renames: Mapping[bytes, Renames] = field(default_factory=dict)

    def write(self, connection: apsw.Connection, branch: int) -> None:
        """Move the branch within a transaction. Raises `Moved` when it is not where it should be."""
        connection.execute(_MOVE_ONLY, (self.commit, self.tree, branch, self.head))
        if connection.changes() == 0:
            raise Moved(self.name, "the branch is at another commit")
        store_objects(connection, self.objects, {})
        for parent, renames in self.renames.items():
            store_renames(connection, self.commit, parent, renames)


class _Made(NamedTuple):
    """A commit that was made, the tree before it, and the layer as it was frozen."""

    commit: bytes
    before: bytes
    frozen: Frozen


class Committer:
    """Makes commits of working layers."""

    def __init__(self, around: Surroundings, layers: Layers, packs: Path, large: LargeStore) -> None:
        """Write packs into the folder `packs`."""
        self._around = around
        self._layers = layers
        self._packs = packs
        self._large = large

    def commit(self, branch: int, note: Note) -> Committed | None:
        """Freeze the working layer of a branch as one commit; None when nothing changed."""
        with self._layers.borrowed(branch) as layer:
            with layer.reading() as rows:
                if not rows.dirty_names and not rows.dirty_nodes:
                    return None
            harvest = self.harvest()
            try:
                with disk_errors("the store"), self._large.writing():
                    hashed = self._hash_resting(layer, harvest)
                    with layer.fence.alone():
                        made = self._commit_frozen(layer, harvest, hashed, note)
            except BaseException:
                harvest.abort()
                raise
            if made is None:
                return None
            self._around.database.flush()
            return self._report(layer, made)

    def compare(self, layer: Layer) -> list[Change]:
        """Return what a commit of the layer would change, storing nothing."""
        written: dict[bytes, Listing] = {}
        sizes: dict[bytes, int] = {}

        def read(oid: bytes) -> Listing:
            listing = written.get(oid)
            return self._around.vault.tree(oid) if listing is None else listing

        with layer.reading() as rows:
            frozen = freeze_rows(rows, lambda row: peek_entry(layer, row, sizes), lambda item, listing: written.update({item.oid: listing}))
            differences = diff_trees(read, rows.tree, frozen.tree, frozen.renames)
        return self.describe(differences, sizes)

    def harvest(self) -> Harvest:
        """Return a collector for the objects of one commit."""
        return Harvest(self._around.vault, self._packs, self._large, sync=self._around.sync)

    def describe(self, differences: Sequence[Difference], sizes: Mapping[bytes, int] = {}) -> list[Change]:
        """Return differences in the store's words; `sizes` has those of contents that are not stored."""
        side = self._around.vault.side
        return [Change(each.kind, each.path, side(each.old, sizes), side(each.new, sizes), each.origin) for each in differences]

    def advance(self, branch: int, move: Move) -> None:
        """Move a branch that callers work on, and have its working layer, which must be clean, follow. Raises `Moved`."""
        with self._layers.borrowed(branch) as layer, layer.fence.alone(), layer.lock:
            layer.refresh()
            if self.compare(layer):
                raise Moved(move.name, "the working layer has uncommitted changes")
            edit = Edit(layer.rows, self._around.clock())
            try:
                with self._around.database.transaction() as connection:
                    move.write(connection, branch)
                    self._follow(connection, layer, edit, move)
            finally:
                layer.invalidate()
            layer.let_go(edit)
        self._around.database.flush()

    def _follow(self, connection: apsw.Connection, layer: Layer, edit: Edit, move: Move) -> None:
        """Make the rows of a layer say what the branch's next tree holds."""
        if not layer.rows.nodes:
            connection.execute(_FRESHEN, (edit.now, layer.branch))
            return
        restore_paths(layer, edit, move.tree, (b"",))
        layer.write(connection, edit)
        layer.rows.apply(edit.names, edit.nodes)
        names, nodes = rebase_rows(layer.rows, self._around.vault.tree, move.tree)
        version = Version(layer.version + 2)
        _write_settled(connection, layer.branch, names, nodes, version)
        dirty = any(entry.dirty == DIRTY for entry in names.values())
        connection.execute(_RELOAD, (version, dirty, layer.branch))

    def _hash_resting(self, layer: Layer, harvest: Harvest) -> dict[NodeId, Hashed]:
        """Store the contents that have rested, if they are worth the trouble, while everybody keeps writing."""
        layer.fence.drain()
        rested = self._around.clock() - _RESTED_NS
        with layer.reading() as rows:
            reach = Reach(rows)
            files = [row for node in rows.dirty_nodes if (row := rows.nodes[node]).is_file and reach.holds(node)]
        written = [row for row in files if row.upper is not None]
        if len(files) < _WORTHWHILE and sum(layer.measure(row) for row in written) < _WORTHWHILE_BYTES:
            return {}
        for row in files:
            if row.upper is None and row.lower is not None:
                harvest.add_below(layer.branch, row.lower)
        hashed = {}
        for row in written:
            signature = sign_content(layer, row)
            if signature is not None and signature[3] < rested:
                hashed[row.id] = Hashed(signature, store_content(layer, row, harvest))
        harvest.flush()
        return hashed

    def _commit_frozen(self, layer: Layer, harvest: Harvest, hashed: Mapping[NodeId, Hashed], note: Note) -> _Made | None:
        """Make the commit while nobody changes the layer; None when its tree is the head's."""
        layer.refresh()
        state = self._around.database.select_one(_HEAD, (layer.branch,))
        assert state is not None
        head, before = state[0], layer.rows.tree
        keep = self._around.vault.keep_tree

        def add(item: GitObject, listing: Listing) -> None:
            harvest.add(item)
            keep(item.oid, listing)

        frozen = freeze_rows(layer.rows, lambda row: store_entry(layer, row, harvest, hashed), add)
        record_sizes(layer, frozen)
        if frozen.tree == before:
            self._settle(layer, frozen, harvest, head, head)
            return None
        commit = harvest.add(compose_commit(frozen.tree, (head,), note))
        self._settle(layer, frozen, harvest, head, commit)
        return _Made(commit, before, frozen)

    def _report(self, layer: Layer, made: _Made) -> Committed:
        """Return what there is to say of a commit; everybody works on meanwhile."""
        read = self._around.vault.tree
        changed = len(diff_trees(read, made.before, made.frozen.tree, made.frozen.renames))
        twins = sorted(list_twins(read, made.before, made.frozen.tree))
        with layer.reading() as rows:
            left_out = rows.left_out()
        return Committed(CommitId(made.commit.hex()), changed, tuple(twins), tuple(left_out))

    def _settle(self, layer: Layer, frozen: Frozen, harvest: Harvest, head: bytes, commit: bytes) -> None:
        """Move the branch and settle the rows: on disk, then in memory."""
        objects = harvest.finish()
        version = Version(layer.version + 1)
        names, nodes = layer.forgettable
        parked = layer.rows.parked_nodes | layer.rows.dirty_nodes
        step("commit: transaction")
        with self._around.database.transaction() as connection:
            values = (commit, frozen.tree, version, version, layer.seal if names or nodes else 0, layer.branch, head)
            connection.execute(_MOVE, values)
            if connection.changes() == 0:
                raise Moved(layer.branch, "the branch moved")
            store_objects(connection, objects, harvest.pointers)
            store_renames(connection, commit, head, frozen.renames)
            _write_settled(connection, layer.branch, frozen.names, frozen.nodes, version)
            drop_drafts(connection, layer.branch, (frozen.nodes.get(node, layer.rows.nodes[node]) for node in parked))
            connection.executemany(_FORGET_NAME, ((layer.branch, *place, layer.seal) for place in names))
            connection.executemany(_FORGET_NODE, ((layer.branch, node, layer.seal) for node in nodes))
        with layer.lock:
            layer.settle(frozen.tree, frozen.names, frozen.nodes, version)


def store_objects(connection: apsw.Connection, objects: Sequence[GitObject], pointers: Mapping[bytes, Pointer]) -> None:
    """Put objects into the journal and remember which of them are pointers to large content."""
    connection.executemany(_PUT_OBJECT, ((item.oid, int(item.kind), item.data) for item in objects))
    connection.executemany(_PUT_LARGE, ((oid, pointer.sha256, pointer.size) for oid, pointer in pointers.items()))


def store_renames(connection: apsw.Connection, commit: bytes, parent: bytes, renames: Mapping[bytes, bytes]) -> None:
    """Remember the renames between a commit and one of its parents."""
    connection.executemany(_PUT_RENAME, ((commit, parent, new, old) for new, old in renames.items()))


def list_twins(read: ReadTree, before: bytes | None, after: bytes) -> list[tuple[bytes, ...]]:
    """Return the twins in every directory whose listing differs from that of an earlier tree, as paths."""
    found: list[tuple[bytes, ...]] = []
    pending: list[tuple[bytes, bytes | None, bytes]] = [(b"", before, after)]
    while pending:
        path, old, new = pending.pop()
        if old == new:
            continue
        listing, earlier = read(new), EMPTY if old is None else read(old)
        if _may_hold_twins(listing):
            found += [tuple(join_path(path, name) for name in group) for group in find_twins(listing)]
        for name, entry in listing.items():
            if entry.mode == DIRECTORY:
                was = earlier.get(name)
                pending.append((join_path(path, name), was.content if was is not None and was.mode == DIRECTORY else None, entry.content))
    return found


def _may_hold_twins(listing: Listing) -> bool:
    """Tell at the cost of one pass whether it is worth to look for twins."""
    names = b"\0".join(listing)
    return not names.isascii() or len(set(names.lower().split(b"\0"))) < len(listing)


def _write_settled(connection: apsw.Connection, branch: int, names: NameRows, nodes: NodeRows, version: Version) -> None:
    """Write rows as they are after the head moved. That a name is clean now, others learn from the branch; other marks they read."""
    cleaned = (place for place, entry in names.items() if entry.dirty == CLEAN)
    connection.executemany(_CLEAN_NAME, ((branch, *place) for place in cleaned))
    marked = ((entry.dirty, version, branch, *place) for place, entry in names.items() if entry.dirty != CLEAN)
    connection.executemany(_MARK_NAME, marked)
    settled = (
        (row.lower, row.size, row.mtime_ns, row.ctime_ns, row.dirty, row.content, row.stamped_ns, version, branch, row.id)
        for row in nodes.values()
    )
    connection.executemany(_SETTLE_NODE, settled)
