"""What labels commits, proposals and merges: each path a run changed carries what the run had read, and no merge leaves a label behind.

1. A commit of a run is labelled after it is durable and before anybody else can see it: its branch is the run's own until it is merged. A
   crash in between is made good by start-up reconciliation, which labels the commit again; repeats change nothing.
2. A changed path gets the join of the run's taint, of what was there before (under this name or the one it was renamed from: a write into
   the middle keeps the rest), and of what is noted of the same bytes elsewhere. Only what is above what its path gives anyway is noted.
3. A merge that combines both sides of a file notes the join of both.
4. Costs grow with what changed; for a run that read nothing labelled, in a storage that holds nothing labelled, with nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nasd.authority import policy_in_force
from nasd.wiring import Appliance
from store.model import Change, CommitId, Side
from trust.labels import CLEAN, DEFAULT, Label, join, join_all
from trust.model import Scope
from trust.policy import CompiledPolicy
from trust.policy.covering import overlap


class Labelling:
    """Labels what runs do to trees. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Work on the state of `appliance`."""
        self._engine = appliance.engine
        self._trust = appliance.trust
        self._ledger = appliance.trust.ledger

    def taint(self, run: str) -> Label:
        """Return the join of what a run has read."""
        return self._ledger.taint(run)

    def label_commit(self, run: str, before: CommitId | None, after: CommitId) -> None:
        """Label what a run changed between two commits of its branch. Repeats change nothing."""
        taint, policy = self._ledger.taint(run), policy_in_force(self._trust)
        if before == after or self._nothing_to_carry(taint, policy):
            return
        rows = list(self._carried(policy, taint, self._engine.diff(before, after)))
        if rows:
            self._ledger.note(rows, after)

    def label_range(self, run: str, before: CommitId, after: CommitId, main: CommitId) -> None:
        """Label every commit that came to a run's branch; what `main` has already is as it was labelled there.

        Each, because what a later commit takes away again stays in the history.
        """
        if self._nothing_to_carry(self._ledger.taint(run), policy_in_force(self._trust)):
            return
        for commit in self._engine.log(after):
            if commit.id == before or self._engine.is_ancestor(commit.id, main):
                return
            self.label_commit(run, next(iter(commit.parents), None), commit.id)

    def _nothing_to_carry(self, taint: Label, policy: CompiledPolicy) -> bool:
        return taint == DEFAULT and not policy.labels and not self._ledger.marks() and not self._ledger.noted()

    def label_of_changes(self, changes: Sequence[Change]) -> Label:
        """Return the join of the labels of everything that changes bring."""
        policy = policy_in_force(self._trust)
        return join_all(self._labels(policy, changes), DEFAULT)

    def labelled_paths(self, changes: Sequence[Change]) -> Iterator[tuple[bytes, Label]]:
        """Yield the changed paths that bring something labelled, with their labels."""
        policy = policy_in_force(self._trust)
        for change in changes:
            label = self._label_of(policy, change.path, change.new)
            if label != DEFAULT:
                yield change.path, label

    def label_merge(self, changes: Sequence[Change], before: CommitId, after: CommitId) -> None:
        """Label what a merge of `changes` made of a target that stood at `before`; files made of both sides get the labels of both."""
        policy = policy_in_force(self._trust)
        brought = {change.path: change for change in changes}
        rows: list[tuple[bytes, bytes, Label]] = []
        for change in self._engine.diff(before, after):
            if change.new is None:
                continue
            label = join(self._label_of(policy, change.path, change.new), self._former(policy, change))
            if (source := brought.get(change.path)) is not None:
                label = join(label, self._label_of(policy, source.path, source.new))
            rows += _row(self._ledger.label(policy, change.path, b""), change.path, change.new, label)
        if rows:
            self._ledger.note(rows, after)

    def label_reachable(self, scope: Scope) -> Label:
        """Return the join of the labels that a lease with this scope could read: by the policy, by marks, by what is noted."""
        policy = policy_in_force(self._trust)
        label = DEFAULT
        labelled = [(pattern.text, rule.label) for rule in policy.labels for pattern in rule.paths.patterns]
        labelled += [(mark.pattern, mark.label) for mark in self._ledger.marks()]
        for text, each in labelled:
            if any(overlap(path, text) for path in scope.paths):
                label = join(label, each)
        return label

    def _carried(self, policy: CompiledPolicy, taint: Label, changes: Iterable[Change]) -> Iterator[tuple[bytes, bytes, Label]]:
        for change in changes:
            if change.new is None:
                continue
            label = join(taint, self._ledger.carried([(_content(change.new), change.new.size or 0)]))
            label = join(label, self._former(policy, change))
            yield from _row(self._ledger.label(policy, change.path, b""), change.path, change.new, label)

    def _labels(self, policy: CompiledPolicy, changes: Iterable[Change]) -> Iterator[Label]:
        for change in changes:
            yield self._label_of(policy, change.path, change.new)

    def _label_of(self, policy: CompiledPolicy, path: bytes, side: Side | None) -> Label:
        return DEFAULT if side is None else self._ledger.label(policy, path, _content(side))

    def _former(self, policy: CompiledPolicy, change: Change) -> Label:
        """Return the label of what a change found, under the name it had."""
        return CLEAN if change.old is None else self._ledger.label(policy, change.origin or change.path, _content(change.old))


def _content(side: Side) -> bytes:
    return side.content.encode("ascii")


def _row(given: Label, path: bytes, side: Side, label: Label) -> Iterator[tuple[bytes, bytes, Label]]:
    """Yield what is to be noted of a path: nothing when the path gives its content the label already."""
    if not label.within(given):
        yield path, _content(side), label
