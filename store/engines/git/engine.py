"""The git engine: one store as one process sees it, put together from its parts.

1. The parts know each other only through what they are given here.
2. The owner recovers when it opens, maintains while it runs, and flushes when it closes. A gateway does none of that.
3. Methods of the contract are short here: they find what the caller names and hand it on.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from store.contract import Progress
from store.engines.git.branches import Branches, BranchRow
from store.engines.git.commits import Committer, Move, store_objects
from store.engines.git.content import ContentCache, disk_errors
from store.engines.git.database import Database
from store.engines.git.exchanging import GitExchange, MoveBranch
from store.engines.git.history import History
from store.engines.git.layers import Layers
from store.engines.git.merging import Merger
from store.engines.git.objects import EMPTY_TREE, GitObject, Kind, compose_commit, make_object
from store.engines.git.reading import CommitTree
from store.engines.git.restoring import restore_paths
from store.engines.git.transfers import Transfers
from store.engines.git.upkeep import Upkeep
from store.engines.git.vault import Vault
from store.engines.git.working import GitWorking
from store.errors import Moved, NotFound, ReadOnly
from store.lines import unify_lines
from store.merge import MergeConflict
from store.model import (
    Branch,
    Capability,
    Change,
    ChangeKind,
    Commit,
    CommitId,
    Committed,
    Conflict,
    EntryKind,
    ImportReport,
    Merged,
    Note,
    Provenance,
    Reclaimed,
    Side,
    Version,
)

_PREFIX = re.compile(r"[0-9a-f]{7,40}")
_NANOSECONDS = 1_000_000_000
_EVERYTHING = (b"",)


class GitEngine:
    """`store.contract.Engine` over one store; `recovered` says what the last owner's machine lost, one line each."""

    capabilities = frozenset(Capability)

    def __init__(
        self,
        *,
        database: Database,
        vault: Vault,
        cache: ContentCache,
        layers: Layers,
        committer: Committer,
        history: History,
        merger: Merger,
        transfers: Transfers,
        upkeep: Upkeep,
        open_exchange: Callable[[Path, MoveBranch], GitExchange],
        recovered: Sequence[str],
    ) -> None:
        """Take the parts over."""
        self._recovered = tuple(recovered)
        self._database = database
        self._vault = vault
        self._cache = cache
        self._layers = layers
        self._committer = committer
        self._history = history
        self._merger = merger
        self._transfers = transfers
        self._upkeep = upkeep
        self._open_exchange = open_exchange
        self._exchanges: dict[Path, GitExchange] = {}
        self._opening = threading.Lock()
        self._branches = Branches(database)

    # branches

    def create_branch(self, name: str, at: CommitId | None, now: int, *, protected: bool = False) -> Branch:
        """Make a branch at a commit, or at a first empty commit of its own. Raises `Exists`, `InvalidName`, `NotFound`."""
        objects: list[GitObject] = []
        if at is None:
            first = compose_commit(EMPTY_TREE, (), Note("start", Provenance(""), now))
            objects = [make_object(Kind.TREE, b""), first]
            head, tree, when = first.oid, EMPTY_TREE, now
        else:
            head = self._history.find(at)
            tree, when = self._history.tree(head), self._history.when(head)
        row = BranchRow(0, name, head, head, now, int(protected))
        with self._database.transaction() as connection:
            store_objects(connection, objects, {})
            self._branches.create(connection, row, tree, when)
        self._database.flush()
        return row.as_branch()

    def branch(self, name: str) -> Branch:
        """Return a branch. Raises `NotFound`."""
        return self._branches.find(name).as_branch()

    def branches(self, prefix: str = "") -> Sequence[Branch]:
        """Return the branches whose name starts with `prefix`, ordered by name."""
        return [row.as_branch() for row in self._branches.list(prefix)]

    def move_branch(self, name: str, expected: CommitId, target: CommitId) -> None:
        """Set the head when it is `expected` and nothing is uncommitted. Raises `Moved`."""
        row = self._expect(name, expected)
        commit = self._history.find(target)
        self._move(row, Move(name, row.head, commit, self._history.tree(commit)))

    def delete_branch(self, name: str, expected: CommitId) -> None:
        """Remove the name and its working layer, whatever it holds. Raises `Moved`."""
        row = self._branches.find(name)
        if row.head.hex() != expected:
            raise Moved(name, f"the branch is at {row.head.hex()}")
        if row.protected:
            self._branches.delete(name, row.head)
            return
        with self._layers.borrowed(row.id) as layer:
            with layer.fence.alone():
                self._branches.delete(name, row.head)
            layer.uppers.remove_all()
        self._layers.forget(row.id)

    # working layers and commits

    def working(self, name: str) -> GitWorking:
        """Return the working layer of a branch. Raises `NotFound`, `ReadOnly` for a protected branch."""
        layer = self._layers.acquire(self._find_open(name).id)
        return GitWorking(layer, self._committer.compare, self._layers.release)

    def dirty(self) -> Mapping[str, Version]:
        """Return the branches with uncommitted changes and the version of each working tree."""
        return self._branches.dirty()

    def commit(self, name: str, note: Note) -> Committed | None:
        """Freeze the working layer as one commit on the branch; None when nothing changed, or the branch is protected."""
        row = self._branches.find(name)
        return None if row.protected else self._committer.commit(row.id, note)

    def restore(self, name: str, source: CommitId, paths: Sequence[bytes]) -> None:
        """Put paths of the working layer back to what `source` holds; no path means everything. Raises `ReadOnly`."""
        row = self._find_open(name)
        tree = self._history.tree(self._history.find(source))
        with self._layers.borrowed(row.id) as layer, layer.editing() as edit:
            restore_paths(layer, edit, tree, tuple(paths) or _EVERYTHING)

    # history

    def resolve(self, text: str) -> CommitId:
        """Return the commit that a branch, a snapshot, a full id or a unique prefix stands for. Raises `NotFound`."""
        try:
            return self.branch(text).head
        except NotFound:
            found = self._branches.find_snapshot(text)
        if found is not None:
            return CommitId(found.hex())
        matches = self._vault.find_commits(text) if _PREFIX.fullmatch(text) else set()
        if len(matches) != 1:
            raise NotFound(text, "no branch, snapshot or commit, or more than one")
        return matches.pop()

    def read_commit(self, commit: CommitId) -> Commit:
        """Return a commit. Raises `NotFound`."""
        return self._history.read(self._history.find(commit))

    def log(self, start: CommitId, path: bytes | None = None) -> Iterator[Commit]:
        """Walk the history from `start`, newest first, children before parents."""
        oids = self._history.walk(self._history.find(start))
        return (self._history.read(oid) for oid in oids if path is None or self._history.changes_path(oid, path))

    def is_ancestor(self, ancestor: CommitId, of: CommitId) -> bool:
        """Tell whether a commit is another's ancestor or that commit itself."""
        return self._history.is_ancestor(self._history.find(ancestor), self._history.find(of))

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the best common ancestor, or None."""
        base = self._history.merge_base(self._history.find(one), self._history.find(other))
        return None if base is None else CommitId(base.hex())

    def view(self, commit: CommitId) -> CommitTree:
        """Return the tree of a commit. Raises `NotFound`."""
        oid = self._history.find(commit)
        return CommitTree(self._vault, self._cache, self._history.tree(oid), self._history.when(oid) * _NANOSECONDS)

    def create_snapshot(self, name: str, commit: CommitId, now: int) -> None:
        """Give a commit a name that never moves. Raises `Exists`."""
        self._branches.create_snapshot(name, self._history.find(commit), now)

    def snapshots(self) -> Sequence[Branch]:
        """Return the snapshots, ordered by name."""
        return [row.as_branch() for row in self._branches.snapshots()]

    # differences and merges

    def diff(self, old: CommitId | None, new: CommitId) -> Sequence[Change]:
        """Return the differences from `old` (None: the empty tree) ordered by path; equal subtrees cost nothing."""
        before = None if old is None else self._history.find(old)
        return self._committer.describe(self._history.differences(before, self._history.find(new)))

    def patch(self, change: Change, limit: int = 1 << 20) -> bytes | None:
        """Return one change as a unified diff, or None when it is binary or a side is above `limit` bytes."""
        sides = (change.old, change.new)
        if any(side is not None and (side.kind is EntryKind.DIRECTORY or (side.size or 0) > limit) for side in sides):
            return None
        old, new = (self._read_side(side) for side in sides)
        return unify_lines(change.origin or change.path, change.path, old, new)

    def merge(self, into: str, expected: CommitId, source: CommitId, note: Note) -> Merged:
        """Merge a commit into a branch by one merge commit with both parents. Raises `Moved`."""
        row = self._expect(into, expected)
        theirs = self._history.find(source)
        if self._history.is_ancestor(theirs, row.head):
            return Merged(expected)
        harvest = self._committer.harvest()
        try:
            merged = self._merger.merge(row.head, theirs, harvest)
            if merged.root is None:
                return Merged(None, self._describe_conflicts(merged.conflicts))
            commit = compose_commit(merged.root, (row.head, theirs), note)
            harvest.add(commit)
            renames = {row.head: merged.renames_from_ours, theirs: merged.renames_from_theirs}
            with disk_errors("the store"):
                self._move(row, Move(into, row.head, commit.oid, merged.root, harvest.finish(), renames))
            return Merged(CommitId(commit.oid.hex()))
        finally:
            harvest.abort()

    def try_merge(self, into: CommitId, source: CommitId) -> Merged:
        """Tell what `merge` would find, changing nothing (`commit` is `into` when clean)."""
        ours, theirs = self._history.find(into), self._history.find(source)
        harvest = self._committer.harvest()
        try:
            merged = self._merger.merge(ours, theirs, harvest)
        finally:
            harvest.abort()
        return Merged(into) if merged.root is not None else Merged(None, self._describe_conflicts(merged.conflicts))

    def unmerged(self, name: str, target: str) -> bool:
        """Tell whether the branch holds what `target`'s history does not, by content: squashed merges count as merged."""
        row, other = self._branches.find(name), self._branches.find(target)
        if self._is_dirty(row):
            return True
        if self._history.is_ancestor(row.head, other.head):
            return False
        base = self._history.merge_base(row.head, other.head)
        paths: set[bytes | None] = set()
        for change in self._history.differences(base, row.head):
            paths.update({change.path, change.origin} if change.kind is ChangeKind.RENAMED else {change.path})
        return not self._history.all_held_since(base, other.head, row.head, {path for path in paths if path is not None})

    # in and out

    def import_directory(self, source: Path, branch: str, note: Note, progress: Progress) -> ImportReport:
        """Commit a directory's content as a new branch. Raises `ImportFailed`, `HostileTree`, `Exists`."""
        return self._transfers.import_directory(source, branch, note, progress)

    def import_git(self, source: str, branch: str, now: int, progress: Progress) -> ImportReport:
        """Take over the history of a git repository as a new branch. Raises as `import_directory`."""
        return self._transfers.import_git(source, branch, now, progress)

    def export_directory(self, commit: CommitId, target: Path, progress: Progress) -> int:
        """Write a commit's tree into an empty or missing directory and return the number of files. Raises `Exists`."""
        return self._transfers.export_directory(self._history.find(commit), target, progress)

    def export_git(self, branch: str, target: Path, progress: Progress) -> int:
        """Write a branch with its history as a bare repository that plain git clones, and return the number of commits."""
        return self._transfers.export_git(branch, target, progress)

    def exchange(self, folder: Path) -> GitExchange:
        """Let git read and write the histories; what may be lost goes below `folder`. The same one for the same folder."""
        with self._opening:
            exchange = self._exchanges.get(folder)
            if exchange is None:
                exchange = self._exchanges[folder] = self._open_exchange(folder, self.move_branch)
            return exchange

    # upkeep

    def size(self, name: str) -> int:
        """Return the bytes on disk that deleting the branch would free at least."""
        return self._layers.disk_bytes(self._branches.find(name).id)

    def deferring(self) -> AbstractContextManager[None]:
        """Run a block in which this thread does not wait for the log to be on stable storage."""
        return self._database.deferring()

    def settle(self) -> None:
        """Return once everything that deferred before is on stable storage."""
        self._database.flush()

    def recovered(self) -> Sequence[str]:
        """Return a sentence for each thing the opening had to put right after a crash."""
        return self._recovered

    def maintain(self, now: int) -> Reclaimed:
        """Pack, repack and tidy at once; the owner's work. Safe at any time, also twice."""
        return self._upkeep.owned().maintain(now)

    def close(self) -> None:
        """Finish background work and release everything. Repeats do nothing."""
        for exchange in self._exchanges.values():
            exchange.close()
        self._upkeep.close()

    def _find_open(self, name: str) -> BranchRow:
        """Return a branch that callers may work on. Raises `NotFound`, `ReadOnly`."""
        row = self._branches.find(name)
        if row.protected:
            raise ReadOnly(name, "the branch is protected; it moves by merges only")
        return row

    def _expect(self, name: str, expected: CommitId) -> BranchRow:
        """Return a branch that is where the caller believes it and has nothing uncommitted. Raises `Moved`."""
        row = self._branches.find(name)
        if row.head.hex() != expected:
            raise Moved(name, f"the branch is at {row.head.hex()}")
        if self._is_dirty(row):
            raise Moved(name, "the working layer has uncommitted changes")
        return row

    def _is_dirty(self, row: BranchRow) -> bool:
        if row.protected or not self._branches.is_dirty(row.id):
            return False
        with self._layers.borrowed(row.id) as layer:
            return bool(self._committer.compare(layer))

    def _move(self, row: BranchRow, move: Move) -> None:
        if not row.protected:
            self._committer.advance(row.id, move)
            return
        with self._database.transaction() as connection:
            move.write(connection, row.id)
        self._database.flush()

    def _read_side(self, side: Side | None) -> bytes | None:
        if side is None:
            return None
        oid = bytes.fromhex(side.content)
        return self._vault.read_whole(oid, Kind.BLOB) if side.kind is EntryKind.SYMLINK else self._vault.content(oid)

    def _describe_conflicts(self, conflicts: Sequence[MergeConflict]) -> tuple[Conflict, ...]:
        side = self._vault.side
        return tuple(Conflict(each.path, side(each.base), side(each.ours), side(each.theirs), each.why) for each in conflicts)
