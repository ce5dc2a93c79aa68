"""The commits of the reference engine: ancestry, common ancestors, and the renames between two commits.

1. A commit keeps one rename map for each parent. Commits are numbered as they are made, so a parent's number is lower.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from store.errors import NotFound
from store.model import Commit, CommitId, ContentId, Note
from store.renames import NONE, Renames, compose_renames, invert_renames


@dataclass(frozen=True, slots=True)
class _Kept:
    commit: Commit
    number: int
    root: bytes
    renames: tuple[Renames, ...]


class History:
    """Every commit of one engine."""

    def __init__(self) -> None:
        self._kept: dict[CommitId, _Kept] = {}

    def add(self, root: bytes, parents: tuple[CommitId, ...], note: Note, renames: tuple[Renames, ...] = ()) -> CommitId:
        """Keep a commit and return its id; `renames` has a map for each parent, from the commit's paths to the parent's."""
        number = len(self._kept)
        identity = CommitId(hashlib.sha256(repr((number, root, parents, note)).encode()).hexdigest())
        tree = ContentId(root.hex())
        self._kept[identity] = _Kept(Commit(identity, parents, tree, note, note.provenance.principal), number, root, renames)
        return identity

    def read(self, commit: CommitId) -> Commit:
        """Return a commit. Raises `NotFound`."""
        return self._find(commit).commit

    def root(self, commit: CommitId) -> bytes:
        """Return the content of a commit's root directory. Raises `NotFound`."""
        return self._find(commit).root

    def _find(self, commit: CommitId) -> _Kept:
        found = self._kept.get(commit)
        if found is None:
            raise NotFound(commit, "no such commit")
        return found

    def starting_with(self, prefix: str) -> list[CommitId]:
        """Return the commits whose id starts with `prefix`."""
        return [commit for commit in self._kept if commit.startswith(prefix)]

    def walk(self, start: CommitId) -> Iterator[Commit]:
        """Yield `start` and all its ancestors, newest first, children before parents."""
        for commit in sorted(self.reach(start), key=lambda each: -self._kept[each].number):
            yield self._kept[commit].commit

    def reach(self, start: CommitId) -> set[CommitId]:
        """Return `start` and all its ancestors."""
        found = set()
        pending = [self._find(start).commit.id]
        while pending:
            commit = pending.pop()
            if commit not in found:
                found.add(commit)
                pending.extend(self._kept[commit].commit.parents)
        return found

    def merge_bases(self, one: CommitId, other: CommitId) -> list[CommitId]:
        """Return the common ancestors that no other common ancestor descends from, newest first."""
        shared = self.reach(one) & self.reach(other)
        best = [commit for commit in shared if not any(commit != each and commit in self.reach(each) for each in shared)]
        return sorted(best, key=lambda each: -self._kept[each].number)

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the best common ancestor, or None."""
        return next(iter(self.merge_bases(one, other)), None)

    def renames_since(self, base: CommitId, commit: CommitId) -> Renames:
        """Return the renames from a commit's paths to those of its ancestor `base`."""
        renames: Renames = NONE
        while commit != base:
            kept = self._kept[commit]
            at = next(at for at, parent in enumerate(kept.commit.parents) if base in self.reach(parent))
            renames = compose_renames(kept.renames[at] if kept.renames else NONE, renames)
            commit = kept.commit.parents[at]
        return renames

    def renames_between(self, old: CommitId, new: CommitId) -> Renames:
        """Return the renames from the paths of one commit to those of another, by way of their common ancestor."""
        base = self.merge_base(old, new)
        if base is None:
            return NONE
        return compose_renames(invert_renames(self.renames_since(base, old)), self.renames_since(base, new))
