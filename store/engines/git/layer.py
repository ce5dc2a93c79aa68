"""The working layer of one branch as this process holds it: its rows, kept current, and the files that are open in it.

1. The rows in the database are the truth; every call begins by asking whether another process changed them: one
   look at the head of the log, and a select when anybody committed anything.
2. A change reads and writes in one transaction, so it decides on the rows as they are, not as they were when it was called.
3. Rows in memory follow after the transaction ended; a failed one leaves them as they were.
4. While a file is dirty its upper file says how long it is and when it changed; the row says so when it is not.
5. A node that lost its last name stays as long as this process has it open: an orphan, known to its own callers only.
6. `lock` guards everything here. The order of locks is fence, content, layer, database.
"""

from __future__ import annotations

import itertools
import os
import secrets
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import apsw

from store.engines.git.content import ContentCache, UpperFiles
from store.engines.git.database import Database, Row
from store.engines.git.drafts import PUT as PUT_DRAFT
from store.engines.git.edits import Edit
from store.engines.git.fence import Fence
from store.engines.git.files import OpenFile
from store.engines.git.nodes import PUT_NODE, SELECT_NODES, NodeRow, describe_node, describe_written, identify_content, stamp_content
from store.engines.git.packs import Sync
from store.engines.git.rows import NameRow, NameRows, NodeRows, Place, Rows
from store.engines.git.vault import Vault
from store.engines.git.walindex import is_next
from store.errors import NotFound, Stale
from store.model import Attributes, NodeId, Version

_STATE = "SELECT version, seal, swept, tree, inherited_ns FROM branch WHERE id = ?"
_NAMES = "SELECT parent, name, node, dirty, origin FROM name WHERE branch = ? AND rev > ?"
PUT_NAME = "INSERT OR REPLACE INTO name VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_BUMP = "UPDATE branch SET version = ?, dirty = max(dirty, ?) WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every layer of an engine works with; `clock` gives nanoseconds since the epoch."""

    database: Database
    vault: Vault
    cache: ContentCache
    uppers: Path
    clock: Callable[[], int]
    sync: Sync


class Layer:
    """One branch's working tree in this process."""

    def __init__(self, around: Surroundings, branch: int) -> None:
        """Prepare for the rows of a branch by its number; the first refresh loads them."""
        self.around = around
        self.branch = branch
        self.lock = threading.RLock()
        self.uppers = UpperFiles(around.uppers / str(branch), sync=around.sync)
        self.fence = Fence(around.uppers / str(branch) / "fence")
        self.version = Version(-1)
        self.seal = -1
        self._head: bytes | None = None
        self._look_at_head = around.database.index.head
        self._reading = Reading(self)
        self._identities = itertools.count(secrets.randbits(60) | 1 << 61)
        self.users = 0
        self.forgettable: tuple[set[Place], set[NodeId]] = (set(), set())
        self._open: dict[NodeId, OpenFile] = {}
        self._orphans: dict[NodeId, NodeRow] = {}
        self.rows = Rows(around.vault.tree, b"", 0)

    def refresh(self) -> None:
        """Take over what other processes changed. Raises `NotFound` when the branch is gone."""
        with self.lock:
            self.follow()

    def follow(self) -> None:
        """Do as `refresh` for a caller that holds the lock."""
        head = self._look_at_head()
        if head is None or head != self._head:
            self._look(head)

    def reading(self) -> Reading:
        """Run a block with the rows as they are now."""
        return self._reading

    def editing(self) -> Changing:
        """Run a block, then make the edit it filled in; an exception makes nothing of it."""
        return Changing(self, self.fence)

    def changing(self) -> Changing:
        """Do as `editing` for a caller that holds the fence."""
        return Changing(self, None)

    def begin(self, connection: apsw.Connection) -> Edit:
        """Return an edit of the rows as they are within a transaction that began just now. The caller holds the lock."""
        head = self.around.database.head()
        if head is None or head != self._head:
            self.catch_up(connection)
            self._head = head
        return Edit(self.rows, self.around.clock())

    def take_over(self, edit: Edit) -> None:
        """Follow an edit whose transaction ended. The caller holds the lock since it began."""
        head = self.around.database.head()
        self._head = head if is_next(self._head, head) else None
        self.rows.apply(edit.names, edit.nodes)
        self.version = Version(self.version + 1)
        self.let_go(edit)

    def let_go(self, edit: Edit) -> None:
        """Remove the upper files that an edit dropped. What is open here keeps the content it has now, whoever wrote it."""
        for row in edit.released:
            if row.id in self._open:
                self._open[row.id].keep(row)
                self._orphans[row.id] = row
        for number in edit.dropped:
            self.uppers.remove(number)

    def catch_up(self, connection: apsw.Connection) -> None:
        """Take over what changed, as this connection sees it. Raises `NotFound` when the branch is gone."""
        state = connection.execute(_STATE, (self.branch,)).fetchone()
        if state is None:
            raise NotFound(self.branch, "the branch was removed")
        if state[0] != self.version:
            self._load(connection, state)

    def find(self, node: NodeId) -> NodeRow:
        """Return the row of a node, also of an orphan. Raises `Stale`. The caller holds the lock and has refreshed."""
        try:
            return self.rows.find(node)
        except Stale:
            if node in self._open:
                return self._orphans.setdefault(node, self._open[node].row)
            raise

    def is_orphan(self, node: NodeId) -> bool:
        """Tell whether a node is open here and has no name any more."""
        return node in self._orphans

    def fresh_id(self) -> NodeId:
        """Return an identity that no node of the branch has; those made one after the other lie on the same pages."""
        while (node := NodeId(next(self._identities))) in self.rows.nodes:
            continue
        return node

    def set_times(self, row: NodeRow) -> NodeRow:
        """Have the upper file of a node carry the times of its row, and return the row, which keeps the identity of the content.

        The caller is alone in the fence: a write between the two looks would go unnoticed.
        """
        if row.upper is None:
            return row
        content = identify_content(row, self.uppers.stat(row.upper))
        self.uppers.set_times(row.upper, row.atime_ns, row.mtime_ns)
        return stamp_content(row, content, self.uppers.stat(row.upper))

    def sync_dirty(self) -> None:
        """Return once the content and name of every uncommitted file is on stable storage."""
        with self.reading() as rows:
            files = [row for node in rows.dirty_nodes | rows.parked_nodes if (row := rows.nodes[node]).upper is not None]
        self.uppers.sync_files(row.upper for row in files if row.upper is not None)
        self._record_sizes(files)
        self.around.database.flush()

    def put_orphan(self, row: NodeRow) -> None:
        """Change the fields of an orphan."""
        self._orphans[row.id] = row

    def describe(self, row: NodeRow) -> Attributes:
        """Return the attributes of a node. The caller holds the lock."""
        links = 0 if row.id in self._orphans else max(len(self.rows.places(row.id)), 1)
        if row.is_directory:
            return describe_node(row, 0, 1)
        if row.is_symlink:
            return describe_node(row, len(self.around.vault.link(row)), links)
        doubtful = row.dirty or row.content is None or row.id in self._orphans
        if row.upper is not None and doubtful and (found := self._stat(row)) is not None:
            return describe_written(row, found, links)
        return describe_node(row, self._size(row), links)

    def measure(self, row: NodeRow) -> int:
        """Return the bytes of an upper file, 0 when somebody removed it. Needs no lock, and so looks at no file that others may close."""
        try:
            return self.uppers.stat(row.upper).st_size if row.upper is not None else 0
        except FileNotFoundError:
            return 0

    def settle(self, tree: bytes, names: NameRows, nodes: NodeRows, version: Version) -> None:
        """Follow a commit of this layer, which is in the database already. The caller holds fence and lock."""
        self.rows.tree = tree
        self.rows.apply(names, nodes)
        self.rows.discard(*self.forgettable)
        self.forgettable = self.rows.forgettable()
        self.version, self.seal = version, version

    def open_file(self, row: NodeRow) -> OpenFile:
        """Return the open file of a node, shared by all who have it open; `close_file` gives it back."""
        with self.lock:
            file = self._open.get(row.id)
            if file is None:
                file = self._open[row.id] = OpenFile(self, row)
            file.users += 1
            return file

    def close_file(self, file: OpenFile) -> None:
        """Give an open file back; the last one closes it."""
        with self.lock:
            file.users -= 1
            if file.users == 0:
                del self._open[file.node]
                self._orphans.pop(file.node, None)
                file.release()

    def is_idle(self) -> bool:
        """Tell whether nobody uses the layer and nobody has a file of it open."""
        return self.users == 0 and not self._open

    def close(self) -> None:
        """Release the fence; the layer is not used any more."""
        self.fence.close()

    def _record_sizes(self, files: Sequence[NodeRow]) -> None:
        with self.editing() as edit:
            for row in files:
                current = self.rows.nodes.get(row.id)
                if current is None or current.upper != row.upper or (found := self._stat(current)) is None:
                    continue
                if found.st_size != current.size:
                    edit.put(current._replace(size=found.st_size, mtime_ns=found.st_mtime_ns))

    def _stat(self, row: NodeRow) -> os.stat_result | None:
        """Return what the disk says of the upper file, or None when another process replaces it right now. The caller holds the lock."""
        file = self._open.get(row.id)
        if file is not None and file.upper == row.upper:
            return os.fstat(file.descriptor)
        try:
            return self.uppers.stat(row.upper) if row.upper is not None else None
        except FileNotFoundError:
            return None

    def _size(self, row: NodeRow) -> int:
        if row.size is not None:
            return row.size
        return 0 if row.lower is None else self.around.vault.size(row.lower)

    def _load(self, connection: apsw.Connection, state: Row) -> None:
        version, seal, swept, tree, time_ns = state
        since = self.version
        if swept > since or since < 0:
            self.rows.reset(tree, time_ns)
            self.forgettable = (set(), set())
            since = Version(-1)
        elif seal != self.seal:
            self.rows.settle(tree)
            self.forgettable = (set(), set())
        names = {
            (parent, name): NameRow(node, dirty, origin)
            for parent, name, node, dirty, origin in connection.execute(_NAMES, (self.branch, since))
        }
        nodes = {row[0]: NodeRow(*row) for row in connection.execute(SELECT_NODES, (self.branch, since))}
        self.rows.apply(names, nodes)
        self.version, self.seal = version, seal

    def invalidate(self) -> None:
        """Read everything again at the next call."""
        self.version = Version(-1)
        self._head = None

    def write(self, connection: apsw.Connection, edit: Edit) -> None:
        """Write the rows of an edit, within the transaction; memory follows later."""
        version = self.version + 1
        if edit.names:
            names = [(self.branch, *place, *entry, version, version) for place, entry in edit.names.items()]
            connection.executemany(PUT_NAME, names)
        if edit.nodes:
            connection.executemany(PUT_NODE, [(self.branch, *row, version, version) for row in edit.nodes.values()])
        if edit.drafts:
            connection.executemany(PUT_DRAFT, [(self.branch, *draft) for draft in edit.drafts])
        connection.execute(_BUMP, (version, edit.dirties(), self.branch))

    def _look(self, head: bytes | None) -> None:
        """Read whether the branch changed; `head` was seen before."""
        state = self.around.database.select_one(_STATE, (self.branch,))
        if state is None or state[0] != self.version:
            with self.around.database.snapshot() as connection:
                self.catch_up(connection)
        self._head = head


class Reading:
    """A block that reads a layer's rows as they are now; one object serves every block."""

    __slots__ = ("_layer",)

    def __init__(self, layer: Layer) -> None:
        """Prepare for blocks that read a layer."""
        self._layer = layer

    def __enter__(self) -> Rows:
        layer = self._layer
        layer.lock.acquire()
        try:
            layer.follow()
        except BaseException:
            layer.lock.release()
            raise
        return layer.rows

    def __exit__(self, kind: object, failure: object, trace: object) -> None:
        self._layer.lock.release()


class Changing:
    """A block that fills in an edit, which is made when the block ends: one transaction, under fence and lock."""

    __slots__ = ("_connection", "_edit", "_fence", "_layer", "_transaction")

    def __init__(self, layer: Layer, fence: Fence | None) -> None:
        """Prepare a change of a layer; `fence` is to be entered, None when the caller is inside."""
        self._layer = layer
        self._fence = fence
        self._transaction = layer.around.database.transaction()

    def __enter__(self) -> Edit:
        if self._fence is not None:
            self._fence.enter()
        self._layer.lock.acquire()
        try:
            return self._begin()
        except BaseException:
            self._release()
            raise

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None) -> None:
        try:
            edit = self._edit if kind is None and self._edit else None
            if edit is not None:
                self._write(edit)
            self._transaction.__exit__(kind, failure, trace)
            if edit is not None:
                self._layer.take_over(edit)
        finally:
            self._release()

    def _begin(self) -> Edit:
        self._connection = self._transaction.__enter__()
        try:
            self._edit = self._layer.begin(self._connection)
        except BaseException:
            self._transaction.__exit__(*sys.exc_info())
            raise
        return self._edit

    def _write(self, edit: Edit) -> None:
        try:
            self._layer.write(self._connection, edit)
        except BaseException:
            self._transaction.__exit__(*sys.exc_info())
            raise

    def _release(self) -> None:
        self._layer.lock.release()
        if self._fence is not None:
            self._fence.leave()
