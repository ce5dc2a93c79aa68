"""An engine beside the reference engine: every call on both, and everything that can be seen of both compared.

1. Either both give the same, or both raise the same class of error.
2. An engine that outlives its process is opened twice, as owner and as gateway; callers of both take turns, and what is seen is
   read through the one that did not act last.
3. Merges whose common ancestor is ambiguous are left out: the contract lets an engine choose.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from store.conformance.bench import Subject, make_note, same, see_change, see_tree
from store.contract import Engine, Handle, Working
from store.engines.reference import ReferenceEngine
from store.errors import StoreError
from store.model import ROOT, Capability, CommitId, EntryKind, Merged
from store.trees import join_path

_SHOWN = 100_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CommitPair:
    """The same commit in the engine and in the reference."""

    tried: CommitId
    reference: CommitId


@dataclass(frozen=True, slots=True)
class HandlePair:
    """One file opened in both."""

    tried: Handle
    reference: Handle

    def compare(self) -> None:
        """See that both read the same."""
        same(self.tried.read(0, _SHOWN), self.reference.read(0, _SHOWN), "the content of an open file")


class SideBySide:
    """Both stores, the branch that is worked on, and the commits and files that were met so far."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.reference = ReferenceEngine(itertools.count(1).__next__)
        self.commits: list[CommitPair] = []
        self.handles: list[HandlePair] = []
        self.layers: dict[str, tuple[Working, Working]] = {}
        self.current = "main"
        self._seconds = itertools.count(1_700_000_000)
        self._open()

    def _open(self) -> None:
        self.tried: Engine = self._subject.open()
        self._second = self._subject.open("gateway") if Capability.DURABLE in self.tried.capabilities else self.tried

    def close(self) -> None:
        """Release everything."""
        for handle in self.handles:
            handle.tried.close()
        if self._second is not self.tried:
            self._second.close()
        self.tried.close()

    def reopen(self) -> None:
        """Close the store and open it again."""
        self.close()
        self._open()
        self.layers = {name: self._callers(name) for name in self.layers}

    def _callers(self, name: str) -> tuple[Working, Working]:
        return self.tried.working(name), self._second.working(name)

    def now(self) -> int:
        """Return the next second."""
        return next(self._seconds)

    def both(self, tried: Callable[[], _T], reference: Callable[[], _T]) -> tuple[_T, _T] | None:
        """Do the same on both and return both results, or None when both refused alike."""
        found, expected = _attempt(tried), _attempt(reference)
        if isinstance(found, StoreError) or isinstance(expected, StoreError):
            same(_describe(found), _describe(expected), "the outcome of the call")
            return None
        return found, expected

    def work(self, call: Callable[[Working], object]) -> None:
        """Do the same on the working layer of the current branch in both; the callers take turns."""
        one, other = self.layers[self.current]
        self.layers[self.current] = (other, one)
        self.both(lambda: call(one), lambda: call(self.reference.working(self.current)))

    def open(self, call: Callable[[Working], Handle]) -> None:
        """Open a file in both and keep it open."""
        one = self.layers[self.current][0]
        opened = self.both(lambda: call(one), lambda: call(self.reference.working(self.current)))
        if opened is not None:
            self.handles.append(HandlePair(*opened))

    def paths(self, *kinds: EntryKind) -> list[bytes]:
        """Return the paths of the current branch, of all kinds or of some."""
        seen = see_tree(self.reference.working(self.current))
        return sorted(path for path, each in seen.items() if not kinds or each.kind in kinds)

    def heads(self, name: str) -> CommitPair:
        """Return the head of a branch in both."""
        return CommitPair(self.tried.branch(name).head, self.reference.branch(name).head)

    def create_branch(self, name: str, at: CommitPair | None) -> None:
        """Make a branch and work there."""
        now = self.now()
        tried, reference = (at.tried, at.reference) if at else (None, None)
        made = self.both(lambda: self.tried.create_branch(name, tried, now), lambda: self.reference.create_branch(name, reference, now))
        if made is not None:
            self.layers[name] = self._callers(name)
            self.current = name
            self.commits.append(self.heads(name))

    def commit(self) -> None:
        """Commit the current branch and compare the commits."""
        note = make_note("commit", self.now())
        result = self.both(lambda: self.tried.commit(self.current, note), lambda: self.reference.commit(self.current, note))
        found, expected = result or (None, None)
        same(found is None, expected is None, "whether there was anything to commit")
        if found is not None and expected is not None:
            same(replace(found, id=expected.id), expected, "what the commit says")
            self._add(CommitPair(found.id, expected.id))

    def merge(self, source: CommitPair) -> None:
        """Try and do a merge into the current branch, and compare what came of it."""
        heads = self.heads(self.current)
        if len(self.reference.history.merge_bases(heads.reference, source.reference)) > 1:
            return
        note = make_note("merge", self.now())
        trial = self.both(
            lambda: self.tried.try_merge(heads.tried, source.tried),
            lambda: self.reference.try_merge(heads.reference, source.reference),
        )
        merged = self.both(
            lambda: self.tried.merge(self.current, heads.tried, source.tried, note),
            lambda: self.reference.merge(self.current, heads.reference, source.reference, note),
        )
        for found, expected in filter(None, (trial, merged)):
            same(_see_merge(found), _see_merge(expected), "what the merge says")
        if merged is not None and merged[0].commit is not None and merged[1].commit is not None:
            self._add(CommitPair(merged[0].commit, merged[1].commit))

    def _add(self, commit: CommitPair) -> None:
        self.commits.append(commit)
        same(_see_commit(self.tried, commit.tried), _see_commit(self.reference, commit.reference), "a commit")

    def compare(self) -> None:
        """See that the current branch looks the same through a caller that did not act last, and so do the open files."""
        for handle in self.handles:
            handle.compare()
        tried, reference = self.layers[self.current][0], self.reference.working(self.current)
        same(see_tree(tried), see_tree(reference), "the working layer")
        same(_see_links(tried), _see_links(reference), "which names are one file")
        same([see_change(each) for each in tried.changes()], [see_change(each) for each in reference.changes()], "uncommitted changes")
        same(sorted(tried.left_out()), sorted(reference.left_out()), "what commits pass over")
        same(sorted(self.reference.dirty().keys() - self.tried.dirty().keys()), [], "dirty branches that were not listed")


def _attempt(call: Callable[[], _T]) -> _T | StoreError:
    try:
        return call()
    except StoreError as error:
        return error


def _describe(outcome: object) -> str:
    return type(outcome).__name__ if isinstance(outcome, StoreError) else "done"


def _see_merge(merged: Merged) -> object:
    return merged.commit is None, [(conflict.path, conflict.why) for conflict in merged.conflicts]


def _see_commit(engine: Engine, commit: CommitId) -> object:
    """Return what can be seen of a commit: its note, tree, history and differences from its parents."""
    facts = engine.read_commit(commit)
    tree = {path: (seen.kind, seen.executable, seen.content) for path, seen in see_tree(engine.view(commit)).items()}
    changes = [[see_change(change) for change in engine.diff(parent, commit)] for parent in facts.parents]
    return facts.note, len(facts.parents), tree, changes, [each.note for each in engine.log(commit)]


def _see_links(working: Working) -> list[list[bytes]]:
    """Return the groups of paths that are one file."""
    groups: dict[int, list[bytes]] = {}
    pending = [(b"", ROOT)]
    while pending:
        prefix, directory = pending.pop()
        for name, attributes in working.list(directory):
            path = join_path(prefix, name)
            groups.setdefault(attributes.node, []).append(path)
            if attributes.kind is EntryKind.DIRECTORY:
                pending.append((path, attributes.node))
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)
