"""What whoever gets a whole history may have read: a clone brings every commit, also what was removed since.

1. The label of a history joins what was noted with its commits, and what the policy and marks say of paths that it has or once had.
2. A pattern that begins with a name counts when the root of some commit has that name; one that begins with a wildcard always counts.
3. Each commit of `main` is looked at once in the life of a process; later questions cost what came since and what `main` does not have.
4. What lies above a lease's ceiling does not count: `nasd.readable` leaves it out of what the lease is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from nasd.authority import policy_in_force
from nasd.wiring import Appliance
from store.model import ROOT, Commit, CommitId
from trust.labels import DEFAULT, Label, join
from trust.model import Scope
from trust.policy.covering import overlap

_MOST_ROOTS = 10_000


class Histories:
    """Labels of histories, for one process. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Look into the state of `appliance`."""
        self._engine = appliance.engine
        self._trust = appliance.trust
        self._main: set[CommitId] = set()
        self._names: set[bytes] = set()
        self._roots: dict[str, frozenset[bytes]] = {}
        self._same: dict[frozenset[bytes], frozenset[bytes]] = {}
        self._lock = threading.Lock()

    def label(self, main: CommitId, tips: Iterable[CommitId], scope: Scope | None) -> Label:
        """Return the label of the histories of `main` and some other commits, as a lease with a scope is shown them."""
        noted = self._trust.ledger.labelled_commits()
        label = DEFAULT
        with self._lock:
            for commit in self._beyond({main}):
                self._main.add(commit.id)
                self._names |= self._root_names(commit)
            names = set(self._names)
            reached = [commit for commit in noted if commit in self._main]
            for commit in self._beyond(set(tips)):
                names |= self._root_names(commit)
                reached.append(commit.id)
        for commit_id in reached:
            label = join(label, noted.get(commit_id, DEFAULT))
        for name, each in self._rules(scope):
            if name is None or name in names:
                label = join(label, each)
        return label

    def _beyond(self, tips: set[CommitId]) -> Iterator[Commit]:
        """Yield the commits of the histories of some commits that `main` is not known to have."""
        pending, seen = list(tips), set(tips)
        while pending:
            if (found := pending.pop()) in self._main:
                continue
            commit = self._engine.read_commit(found)
            yield commit
            pending += [parent for parent in commit.parents if parent not in seen]
            seen.update(commit.parents)

    def _root_names(self, commit: Commit) -> frozenset[bytes]:
        """Return the names in the root of a commit; roots with the same names share them."""
        names = self._roots.get(commit.tree)
        if names is None:
            found = frozenset(name for name, _ in self._engine.view(commit.id).list(ROOT))
            if len(self._roots) >= _MOST_ROOTS:
                self._roots.clear()
            names = self._roots[commit.tree] = self._same.setdefault(found, found)
        return names

    def _rules(self, scope: Scope | None) -> Iterator[tuple[bytes | None, Label]]:
        """Yield the first name (None: any) and the label of every pattern that labels something the scope reaches."""
        labelled = [(pattern.text, rule.label) for rule in policy_in_force(self._trust).labels for pattern in rule.paths.patterns]
        labelled += [(mark.pattern, mark.label) for mark in self._trust.ledger.marks()]
        for text, label in labelled:
            if scope is not None and scope.ceiling is not None and not label.within(scope.ceiling):
                continue
            if scope is None or any(overlap(path, text) for path in scope.paths):
                first = text.partition("/")[0]
                yield (None if "*" in first or "?" in first else first.encode()), label
