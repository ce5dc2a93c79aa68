"""The reference engine itself: branches, commits, merges.

1. One lock around every call; no call calls out while it holds it but for progress.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from store.contract import Progress
from store.diff import Difference, diff_trees
from store.engines.reference.contents import Contents
from store.engines.reference.history import History
from store.engines.reference.layer import Layer
from store.engines.reference.nodes import Nodes
from store.engines.reference.transfer import Intake, Outlet
from store.engines.reference.working import FrozenTree, MemoryWorking
from store.errors import Exists, InvalidName, Moved, NotFound, ReadOnly, Unsupported
from store.exchange import Exchange
from store.lines import merge_lines, unify_lines
from store.merge import MergeConflict, MergedTree, merge_trees
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
from store.names import explain_branch_name, names_above
from store.renames import NONE, Renames
from store.trees import TreeEntry, find_entry

_PREFIX = re.compile(r"[0-9a-f]{7,64}")
_NANOSECONDS = 1_000_000_000


@dataclass(slots=True)
class _Line:
    """A branch and, once somebody worked on it, its working layer."""

    branch: Branch
    layer: Layer | None = None


class ReferenceEngine:
    """A store in memory; `clock` gives nanoseconds since the epoch for the times of files."""

    capabilities = frozenset({Capability.XATTRS, Capability.HARD_LINKS, Capability.SPARSE})

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._contents = Contents()
        self.history = History()
        self._lines: dict[str, _Line] = {}
        self._snapshots: dict[str, Branch] = {}

    # branches

    def create_branch(self, name: str, at: CommitId | None, now: int, *, protected: bool = False) -> Branch:
        """Make a branch at a commit, or at a first empty commit of its own."""
        with self._lock:
            self._check_free(name)
            if at is None:
                at = self.history.add(self._contents.write_tree({}), (), Note("start", Provenance(""), now))
            head = self.history.read(at).id
            branch = Branch(name, head, head, now, protected)
            self._lines[name] = _Line(branch)
            return branch

    def _check_free(self, name: str) -> None:
        why = explain_branch_name(name)
        if why is not None:
            raise InvalidName(name, why)
        if name in self._lines or any(above in self._lines for above in names_above(name)):
            raise Exists(name, "the name, or one above it, is a branch")
        if any(other.startswith(name + "/") for other in self._lines):
            raise Exists(name, "branches lie below the name")

    def branch(self, name: str) -> Branch:
        """Return a branch."""
        with self._lock:
            return self._line(name).branch

    def _line(self, name: str) -> _Line:
        line = self._lines.get(name)
        if line is None:
            raise NotFound(name, "no such branch")
        return line

    def branches(self, prefix: str = "") -> Sequence[Branch]:
        """Return the branches whose name starts with `prefix`."""
        with self._lock:
            return [line.branch for name, line in sorted(self._lines.items()) if name.startswith(prefix)]

    def move_branch(self, name: str, expected: CommitId, target: CommitId) -> None:
        """Set the head by compare-and-set."""
        with self._lock:
            line = self._expect(name, expected)
            self._advance(line, self.history.read(target).id)

    def _expect(self, name: str, expected: CommitId) -> _Line:
        """Return a branch that is where it should be and has no uncommitted changes. Raises `Moved`."""
        line = self._line(name)
        if line.branch.head != expected:
            raise Moved(name, f"the branch is at {line.branch.head}")
        if line.layer is not None and line.layer.differences():
            raise Moved(name, "the working layer has uncommitted changes")
        return line

    def _advance(self, line: _Line, head: CommitId) -> None:
        """Move a clean branch and make its working layer hold the head's tree."""
        line.branch = replace(line.branch, head=head)
        if line.layer is not None:
            line.layer.put(b"", TreeEntry(0o040000, self.history.root(head)), self._clock())
            line.layer.settle()
            line.layer.head = self.history.root(head)

    def delete_branch(self, name: str, expected: CommitId) -> None:
        """Remove a branch by compare-and-set."""
        with self._lock:
            line = self._line(name)
            if line.branch.head != expected:
                raise Moved(name, f"the branch is at {line.branch.head}")
            del self._lines[name]
            if line.layer is not None:
                line.layer.gone = True

    # working layer and commits

    def working(self, name: str) -> MemoryWorking:
        """Return the working layer of a branch."""
        with self._lock:
            line = self._line(name)
            if line.branch.protected:
                raise ReadOnly(name, "the branch is protected")
            layer = self._layer(line)
            return MemoryWorking(name, layer, self._lock, self._clock, lambda: self._changes(layer.differences()))

    def _layer(self, line: _Line) -> Layer:
        if line.layer is None:
            now = self.history.read(line.branch.head).note.when * _NANOSECONDS
            line.layer = Layer(self._contents, self.history.root(line.branch.head), now)
        return line.layer

    def dirty(self) -> Mapping[str, Version]:
        """Return the branches with uncommitted changes."""
        with self._lock:
            layers = {name: line.layer for name, line in self._lines.items() if line.layer is not None}
            return {name: layer.version for name, layer in layers.items() if layer.differences()}

    def commit(self, name: str, note: Note) -> Committed | None:
        """Freeze the working layer."""
        with self._lock:
            line = self._line(name)
            layer = line.layer
            if layer is None:
                return None
            before, renames, differences = layer.head, layer.renames(), layer.differences()
            layer.settle()
            if not differences:
                return None
            head = self.history.add(layer.head, (line.branch.head,), note, (renames,))
            line.branch = replace(line.branch, head=head)
            left_out = tuple(layer.nodes.left_out(layer.nodes.root))
            return Committed(head, len(differences), tuple(layer.twins(before)), left_out)

    def restore(self, name: str, source: CommitId, paths: Sequence[bytes]) -> None:
        """Put paths of the working layer back to what a commit holds."""
        with self._lock:
            line = self._line(name)
            if line.branch.protected:
                raise ReadOnly(name, "the branch is protected")
            root = self.history.root(source)
            for path in paths or (b"",):
                self._layer(line).put(path, find_entry(self._contents.read_tree, root, path), self._clock())

    # history

    def resolve(self, text: str) -> CommitId:
        """Return the commit that a text stands for."""
        with self._lock:
            named = self._lines[text].branch if text in self._lines else self._snapshots.get(text)
            if named is not None:
                return named.head
            found = self.history.starting_with(text) if _PREFIX.fullmatch(text) else []
            if len(found) != 1:
                raise NotFound(text, "no branch, snapshot or commit, or more than one")
            return found[0]

    def read_commit(self, commit: CommitId) -> Commit:
        """Return a commit."""
        with self._lock:
            return self.history.read(commit)

    def log(self, start: CommitId, path: bytes | None = None) -> Iterator[Commit]:
        """Walk the history, newest first."""
        with self._lock:
            commits = [commit for commit in self.history.walk(start) if path is None or self._touches(commit, path)]
        return iter(commits)

    def _touches(self, commit: Commit, path: bytes) -> bool:
        """Tell whether a commit's entry at a path differs from that of every parent."""
        entry = self._entry(commit.id, path)
        return all(self._entry(parent, path) != entry for parent in commit.parents) and bool(commit.parents or entry)

    def _entry(self, commit: CommitId, path: bytes) -> TreeEntry | None:
        return find_entry(self._contents.read_tree, self.history.root(commit), path)

    def is_ancestor(self, ancestor: CommitId, of: CommitId) -> bool:
        """Tell whether a commit is another's ancestor or that commit itself."""
        with self._lock:
            return self.history.read(ancestor).id in self.history.reach(of)

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the best common ancestor."""
        with self._lock:
            return self.history.merge_base(one, other)

    def view(self, commit: CommitId) -> FrozenTree:
        """Return the tree of a commit."""
        with self._lock:
            nodes = Nodes(self._contents)
            when = self.history.read(commit).note.when * _NANOSECONDS
            nodes.root.mtime_ns = nodes.root.ctime_ns = nodes.root.atime_ns = when
            nodes.fill(nodes.root, self.history.root(commit), when, None)
            return FrozenTree(nodes, self._lock)

    def create_snapshot(self, name: str, commit: CommitId, now: int) -> None:
        """Give a commit a name that never moves."""
        with self._lock:
            why = explain_branch_name(name)
            if why is not None:
                raise InvalidName(name, why)
            if name in self._snapshots:
                raise Exists(name)
            head = self.history.read(commit).id
            self._snapshots[name] = Branch(name, head, head, now, protected=True)

    def snapshots(self) -> Sequence[Branch]:
        """Return the snapshots."""
        with self._lock:
            return [snapshot for _, snapshot in sorted(self._snapshots.items())]

    # differences and merges

    def diff(self, old: CommitId | None, new: CommitId) -> Sequence[Change]:
        """Return the differences between two commits."""
        with self._lock:
            before = None if old is None else self.history.root(old)
            renames: Renames = NONE if old is None else self.history.renames_between(old, new)
            return self._changes(diff_trees(self._contents.read_tree, before, self.history.root(new), renames))

    def _changes(self, differences: Sequence[Difference]) -> list[Change]:
        describe = self._contents.describe
        return [Change(each.kind, each.path, describe(each.old), describe(each.new), each.origin) for each in differences]

    def patch(self, change: Change, limit: int = 1 << 20) -> bytes | None:
        """Return one change as a unified diff."""
        with self._lock:
            sides = (change.old, change.new)
            if any(side is not None and (side.kind is EntryKind.DIRECTORY or (side.size or 0) > limit) for side in sides):
                return None
            old, new = (self._read_side(side) for side in sides)
            return unify_lines(change.origin or change.path, change.path, old, new)

    def _read_side(self, side: Side | None) -> bytes | None:
        return None if side is None else self._contents.read_blob(bytes.fromhex(side.content))

    def merge(self, into: str, expected: CommitId, source: CommitId, note: Note) -> Merged:
        """Merge a commit into a branch."""
        with self._lock:
            line = self._expect(into, expected)
            if self.is_ancestor(source, expected):
                return Merged(expected)
            merged = self._merge(expected, source)
            if merged.root is None:
                return Merged(None, self._conflicts(merged.conflicts))
            renames = (merged.renames_from_ours, merged.renames_from_theirs)
            head = self.history.add(merged.root, (expected, source), note, renames)
            self._advance(line, head)
            return Merged(head)

    def try_merge(self, into: CommitId, source: CommitId) -> Merged:
        """Tell what a merge would find."""
        with self._lock:
            merged = self._merge(into, source)
            return Merged(into) if merged.root is not None else Merged(None, self._conflicts(merged.conflicts))

    def _merge(self, ours: CommitId, theirs: CommitId) -> MergedTree:
        base = self.history.merge_base(ours, theirs)
        renames = [NONE if base is None else self.history.renames_since(base, side) for side in (ours, theirs)]
        roots = [None if base is None else self.history.root(base), self.history.root(ours), self.history.root(theirs)]
        contents = self._contents
        return merge_trees(
            contents.read_tree, contents.write_tree, roots[0], roots[1] or b"", roots[2] or b"", self._merge_content, *renames
        )

    def _merge_content(self, path: bytes, base: TreeEntry | None, ours: TreeEntry, theirs: TreeEntry) -> TreeEntry | None:
        if base is None:
            return None
        read = self._contents.read_blob
        merged = merge_lines(read(base.content), read(ours.content), read(theirs.content))
        return None if merged is None else TreeEntry(ours.mode, self._contents.write_blob(merged))

    def _conflicts(self, conflicts: Sequence[MergeConflict]) -> tuple[Conflict, ...]:
        describe = self._contents.describe
        return tuple(Conflict(each.path, describe(each.base), describe(each.ours), describe(each.theirs), each.why) for each in conflicts)

    def unmerged(self, name: str, target: str) -> bool:
        """Tell whether the branch holds content that the target's history does not."""
        with self._lock:
            line, head, other = self._line(name), self.branch(name).head, self.branch(target).head
            if line.layer is not None and line.layer.differences():
                return True
            base = self.history.merge_base(head, other)
            since = self.history.reach(other) - (set() if base is None else self.history.reach(base))
            return head not in self.history.reach(other) and not all(
                any(self._entry(commit, path) == self._entry(head, path) for commit in since) for path in self._paths(base, head)
            )

    def _paths(self, base: CommitId | None, head: CommitId) -> set[bytes]:
        """Return every path that differs, the former paths of renames included."""
        changes = self.diff(base, head)
        return {change.path for change in changes} | {
            change.origin for change in changes if change.kind is ChangeKind.RENAMED and change.origin
        }

    # in and out

    def import_directory(self, source: Path, branch: str, note: Note, progress: Progress) -> ImportReport:
        """Commit a directory's content as a branch of its own."""
        with self._lock:
            self._check_free(branch)
            intake = Intake(self._contents, progress)
            commit = self.history.add(intake.read(source), (), note)
            self.create_branch(branch, commit, note.when)
            return ImportReport(commit, intake.files, intake.bytes, intake.passed_over)

    def import_git(self, source: str, branch: str, now: int, progress: Progress) -> ImportReport:
        """Refuse: this engine does not speak git."""
        raise Unsupported("import_git", "the reference engine does not speak git")

    def export_directory(self, commit: CommitId, target: Path, progress: Progress) -> int:
        """Write a commit's tree into a directory."""
        with self._lock:
            return Outlet(self._contents, progress).write(self.history.root(commit), target)

    def export_git(self, branch: str, target: Path, progress: Progress) -> int:
        """Refuse: this engine does not speak git."""
        raise Unsupported("export_git", "the reference engine does not speak git")

    def exchange(self, folder: Path) -> Exchange:
        """Refuse: this engine does not speak git."""
        raise Unsupported("exchange", "the reference engine does not speak git")

    # upkeep

    def size(self, name: str) -> int:
        """Return 0: nothing is on disk."""
        with self._lock:
            self._line(name)
            return 0

    def deferring(self) -> AbstractContextManager[None]:
        """Run a block; nothing here is ever on stable storage."""
        return nullcontext()

    def settle(self) -> None:
        """Return at once: nothing was deferred."""

    def recovered(self) -> Sequence[str]:
        """Return nothing: there is never anything to put right."""
        return ()

    def maintain(self, now: int) -> Reclaimed:
        """Do nothing: there is nothing to tidy."""
        return Reclaimed(0)

    def close(self) -> None:
        """Do nothing: there is nothing to finish."""
