"""The history of a store: its commits, who descends from whom, what a path went through, and the renames on the way.

1. Renames are composed from what was recorded with each commit, by way of the common ancestor.
2. Only where nothing was recorded because the history was imported, equal content under another name counts as a rename.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from store.diff import Difference, diff_trees
from store.engines.git import ancestry
from store.engines.git.ancestry import Generation
from store.engines.git.caches import RecentMap
from store.engines.git.database import Database
from store.engines.git.objects import Kind, parse_signature, read_commit
from store.engines.git.vault import Vault
from store.errors import NotFound
from store.model import ChangeKind, Commit, CommitId
from store.renames import NONE, Renames, compose_renames, detect_renames, invert_renames
from store.trees import TreeEntry, find_entry

_RENAMES = "SELECT new, old FROM rename WHERE target = ? AND parent = ?"
_OURS = b"Agent NAS <"
_KEPT = 200_000


class History:
    """The commits of one store."""

    def __init__(self, database: Database, vault: Vault) -> None:
        """Read commits from `vault` and recorded renames from `database`."""
        self._database = database
        self._vault = vault
        self._generations: RecentMap[bytes, Generation] = RecentMap(_KEPT)
        self._descents: RecentMap[tuple[bytes, bytes], bool] = RecentMap(_KEPT)

    def find(self, commit: CommitId) -> bytes:
        """Return the identity of a commit that exists. Raises `NotFound`."""
        try:
            oid = bytes.fromhex(commit)
        except ValueError:
            raise NotFound(commit, "not the id of a commit") from None
        if len(oid) != 20 or not self._vault.is_commit(oid):
            raise NotFound(commit, "no such commit")
        return oid

    def read(self, oid: bytes) -> Commit:
        """Return a commit in the store's words. Raises `NotFound`."""
        return read_commit(oid, self._vault.read_whole(oid, Kind.COMMIT))

    def tree(self, oid: bytes) -> bytes:
        """Return the tree of a commit. Raises `NotFound`."""
        return self._vault.commit(oid).tree

    def when(self, oid: bytes) -> int:
        """Return the time of a commit in seconds."""
        return self._generation(oid).when

    def walk(self, start: bytes) -> Iterator[bytes]:
        """Yield a commit and its ancestors, newest first, children before parents."""
        return ancestry.walk(self._generation, start)

    def reach(self, start: bytes) -> set[bytes]:
        """Return a commit and its ancestors."""
        return ancestry.reach(self._generation, start)

    def is_ancestor(self, ancestor: bytes, of: bytes) -> bool:
        """Tell whether a commit is another's ancestor or that commit itself."""
        known = self._descents.get((ancestor, of))
        if known is None:
            known = ancestry.is_ancestor(self._generation, ancestor, of)
            self._descents.put((ancestor, of), known)
        return known

    def merge_base(self, one: bytes, other: bytes) -> bytes | None:
        """Return the best common ancestor, or None."""
        return next(iter(ancestry.find_merge_bases(self._generation, one, other)), None)

    def entry(self, oid: bytes, path: bytes) -> TreeEntry | None:
        """Return what a commit holds at a path."""
        return find_entry(self._vault.tree, self.tree(oid), path)

    def changes_path(self, oid: bytes, path: bytes) -> bool:
        """Tell whether a commit's entry at a path differs from that of every parent; of a first commit, whether there is one."""
        entry = self.entry(oid, path)
        parents = self._vault.commit(oid).parents
        return all(self.entry(parent, path) != entry for parent in parents) if parents else entry is not None

    def all_held_since(self, base: bytes | None, start: bytes, source: bytes, paths: Iterable[bytes]) -> bool:
        """Tell whether each path of `source` is the same in some commit from `start` back to `base`, which does not count."""
        missing = {path: self.entry(source, path) for path in paths}
        known = set() if base is None else self.reach(base)
        for oid in self.walk(start):
            if not missing:
                break
            if oid not in known:
                missing = {path: entry for path, entry in missing.items() if self.entry(oid, path) != entry}
        return not missing

    def differences(self, old: bytes | None, new: bytes) -> list[Difference]:
        """Return what differs between two commits, renames included."""
        before = None if old is None else self.tree(old)
        renames = NONE if old is None else self.renames_between(old, new)
        found = diff_trees(self._vault.tree, before, self.tree(new), renames)
        if renames or old is None or self._vault.commit(new).committer.startswith(_OURS):
            return found
        guessed = _guess_renames(found)
        return diff_trees(self._vault.tree, before, self.tree(new), guessed) if guessed else found

    def renames_between(self, old: bytes, new: bytes) -> Renames:
        """Return the renames from the paths of one commit to those of another."""
        base = self.merge_base(old, new)
        if base is None:
            return NONE
        return compose_renames(invert_renames(self.renames_since(base, old)), self.renames_since(base, new))

    def renames_since(self, base: bytes, commit: bytes) -> Renames:
        """Return the renames from a commit's paths to those of its ancestor `base`."""
        renames: Renames = NONE
        while commit != base:
            parent = self._parent_towards(base, commit)
            step = {new: old for new, old in self._database.select(_RENAMES, (commit, parent))}
            renames = compose_renames(step, renames) if step or renames else NONE
            commit = parent
        return renames

    def _parent_towards(self, base: bytes, commit: bytes) -> bytes:
        parents = self._vault.commit(commit).parents
        if len(parents) == 1:
            return parents[0]
        return next(parent for parent in parents if self.is_ancestor(base, parent))

    def _generation(self, oid: bytes) -> Generation:
        generation = self._generations.get(oid)
        if generation is None:
            commit = self._vault.commit(oid)
            generation = Generation(commit.parents, parse_signature(commit.committer)[1])
            self._generations.put(oid, generation)
        return generation


def _guess_renames(found: list[Difference]) -> dict[bytes, bytes]:
    gone = [(each.path, each.old) for each in found if each.kind is ChangeKind.DELETED and each.old is not None]
    added = [(each.path, each.new) for each in found if each.kind is ChangeKind.ADDED and each.new is not None]
    return detect_renames(gone, added)
