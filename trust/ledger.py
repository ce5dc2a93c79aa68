"""The ledger of labels: what is known of bytes, of paths and of runs.

1. The label of bytes at a path is the join of what the policy and marks say of the path and of what was noted of exactly these bytes there.
   An endorsement stands instead of all of it, for exactly these bytes at exactly this path.
2. Nothing lowers a label but an endorsement and the removal of a mark; both are the composition's to ask people about and to record.
3. Bytes that were noted under one path are recognised under another when they are noted there: see `carried`. Very short ones are not,
   since an empty file says nothing about where it came from.
4. A taint only rises, and a rise ends every decision that was made before, in every process.
5. Rows are visible at once and durable soon (`LAZY_SECONDS`); what is consequential after a read flushes them with its own intent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trust.contract import Engine
from trust.labels import DEFAULT, Label, join, join_all
from trust.model import Epoch, Labelled, Mark
from trust.policy.patterns import PathSet, parse_pattern, path_set
from trust.policy.rules import CompiledPolicy

SHORT = 32
"""Contents of fewer bytes than this are not recognised under another path."""


@dataclass(frozen=True, slots=True)
class LabelPart:
    """One thing that is known of some bytes: `source` is ``policy``, ``mark``, ``noted`` or ``endorsed``, `place` the line or pattern."""

    source: str
    place: str
    label: Label


class _Known(NamedTuple):
    """What is known at an epoch: whether anything is noted of bytes, and the marks."""

    epoch: Epoch
    noted: bool
    marks: tuple[tuple[PathSet, Label], ...]


class Ledger:
    """What trust knows of labels. Any thread may call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known = _Known(Epoch(-1), False, ())

    def noted(self) -> bool:
        """Tell whether anything is noted of any bytes at all."""
        return self._look().noted

    def label(self, policy: CompiledPolicy, path: bytes, content: bytes) -> Label:
        """Return the label of bytes at a path; `content` is empty for what has none (a directory)."""
        known = self._look()
        row = self._engine.labels.find(path, content) if content and known.noted else None
        if row is not None and row.endorsed:
            return row.label
        label = policy.label_of(path) if policy.labelled.matches(path) else DEFAULT
        for paths, marked in known.marks:
            if paths.matches(path):
                label = join(label, marked)
        return label if row is None else join(label, row.label)

    def explain(self, policy: CompiledPolicy, path: bytes, content: bytes) -> tuple[LabelPart, ...]:
        """Return everything that is known of bytes at a path; `label` is the join of it, or the endorsement alone where there is one."""
        row = self._engine.labels.find(path, content) if content else None
        noted = () if row is None else (LabelPart("endorsed" if row.endorsed else "noted", "", row.label),)
        ruled = (LabelPart("policy", str(rule.position), rule.label) for rule in policy.labels if rule.paths.matches(path))
        marked = (LabelPart("mark", mark.pattern, mark.label) for mark in self.marks() if path_set((mark.pattern,)).matches(path))
        return (*ruled, *marked, *noted)

    def rows(self, after: tuple[bytes, bytes], limit: int) -> Sequence[Labelled]:
        """Return up to `limit` of what is noted of bytes, by path and content, behind a path and content."""
        return self._engine.labels.page(after, limit)

    def label_of_names(self, policy: CompiledPolicy, directory: bytes) -> Label:
        """Return the label of knowing the names in a directory."""
        return policy.label_of_names(directory)

    def label_below(self, policy: CompiledPolicy, directory: bytes) -> Label:
        """Return a label that nothing at or below a directory is above."""
        label = policy.label_below(directory)
        for paths, marked in self._marked():
            if paths.matches(directory) or paths.may_match_below(directory):
                label = join(label, marked)
        noted = self._engine.labels.below(directory)
        return label if noted is None else join(label, noted)

    def labels_below(self, policy: CompiledPolicy, directory: bytes) -> bool:
        """Tell whether something below a directory may have a label, whatever it is."""
        if policy.label_below(directory) != DEFAULT or any(paths.may_match_below(directory) for paths, _ in self._marked()):
            return True
        start = directory + b"/" if directory else b""
        return self.noted() and any(row.path.startswith(start) for row in self._engine.labels.page((start, b""), 1))

    def carried(self, contents: Iterable[tuple[bytes, int]]) -> Label:
        """Return the join of what is noted of contents, given with their sizes, under any path."""
        if not self.noted():
            return DEFAULT
        rows = [row for content, size in contents if size >= SHORT for row in self._engine.labels.of_content(content)]
        return join_all((row.label for row in rows), DEFAULT)

    def note(self, rows: Sequence[tuple[bytes, bytes, Label]], commit: str) -> None:
        """Join labels into what is noted of bytes at paths (path, content, label), which came with a commit; what was endorsed stays so."""
        with self._engine.transaction(durable=False):
            first = self._engine.labels.empty()
            self._engine.labels.put([noted for row in rows if (noted := self._joined(*row)) is not None])
            self._engine.labels.put_commit(commit, join_all((label for _, _, label in rows), DEFAULT))
            if first and not self._engine.labels.empty():
                self._engine.bump()  # see `noted`

    def labelled_commits(self) -> Mapping[str, Label]:
        """Return the commits with which something was noted, each with the join of it: what whoever gets it may have read."""
        return self._engine.labels.commits()

    def endorse(self, path: bytes, content: bytes, label: Label) -> None:
        """Give exactly these bytes at exactly this path a label, whatever it was. Durable when it returns."""
        with self._engine.transaction():
            self._engine.labels.put([Labelled(path, content, label, endorsed=True)])
            self._engine.bump()

    def marks(self) -> Sequence[Mark]:
        """Return every mark, ordered by pattern."""
        return self._engine.labels.marks()

    def mark(self, pattern: str, label: Label) -> None:
        """Put a label on every path of a pattern, joined with one that is there. Raises `PatternInvalid`."""
        parse_pattern(pattern)
        with self._engine.transaction():
            found = [mark.label for mark in self._engine.labels.marks() if mark.pattern == pattern]
            self._engine.labels.put_mark(Mark(pattern, join_all(found, label)))
            self._engine.bump()

    def unmark(self, pattern: str) -> bool:
        """Take a mark away and tell whether there was one."""
        with self._engine.transaction():
            removed = self._engine.labels.remove_mark(pattern)
            self._engine.bump()
        return removed

    def taint(self, run: str) -> Label:
        """Return the join of what a run has read."""
        return self._engine.labels.taint(run)

    def raise_taint(self, run: str, label: Label) -> Label:
        """Join a label into the taint of a run and return what it is now."""
        with self._engine.transaction(durable=False):
            before = self._engine.labels.taint(run)
            after = join(before, label)
            if after != before:
                self._engine.labels.raise_taint(run, after)
                self._engine.bump()
        return after

    def _joined(self, path: bytes, content: bytes, label: Label) -> Labelled | None:
        row = self._engine.labels.find(path, content)
        if row is None:
            return Labelled(path, content, label)
        return None if row.endorsed or label.within(row.label) else Labelled(path, content, join(row.label, label))

    def _marked(self) -> tuple[tuple[PathSet, Label], ...]:
        return self._look().marks

    def _look(self) -> _Known:
        """Return what nearly every question needs, read again when the epoch has moved."""
        epoch, known = self._engine.epoch(), self._known
        if known.epoch != epoch:
            marks = tuple((path_set((mark.pattern,)), mark.label) for mark in self._engine.labels.marks())
            self._known = known = _Known(epoch, not self._engine.labels.empty(), marks)
        return known
