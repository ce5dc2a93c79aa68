"""What is known about where a proposal comes from: what its run read, what of that has changed since, and the labels of what it brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nasd.labelling import Labelling
from nasd.manifest import Manifest, read_manifest, stale_reads, summarise_reads, words
from nasd.paths import render_path
from nasd.runs import Run
from nasd.trees import node_at
from nasd.wiring import Appliance
from store.contract import Tree
from store.errors import NotADirectory, NotFound
from store.model import Change, CommitId
from trust.labels import Label

_KINDS = ("reads", "taint")
_NAMED = 50
"""How many labelled paths a card names."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts of a merge that are about its past: the run's taint, the label of what is brought, the reads that are stale."""

    taint: Label
    label: Label
    labelled: tuple[str, ...]
    manifest: Manifest
    stale: tuple[str, ...]

    def card(self) -> dict[str, Any]:
        """Return what a card says of it."""
        named = {"paths": list(self.labelled[:_NAMED]), "beyond": max(0, len(self.labelled) - _NAMED)}
        return {
            "labels": words(self.label) | named,
            "taint": words(self.taint) | {"because": self.manifest.taints},
            "reads": summarise_reads(self.manifest, list(self.stale)),
            "stale_reads": list(self.stale[:_NAMED]),
        }


class EvidenceRoom:
    """Gathers evidence. Any thread may call."""

    def __init__(self, appliance: Appliance, labelling: Labelling) -> None:
        """Look into the state of `appliance`."""
        self._appliance = appliance
        self._labelling = labelling

    def of(self, run: Run, changes: Sequence[Change], target: CommitId) -> Evidence:
        """Return what is known about changes of a run against a target that stands at a commit."""
        trust, view = self._appliance.trust, self._appliance.engine.view(target)
        manifest = read_manifest(record for kind in _KINDS for record in trust.records(kind=kind, run=run.run))
        written = frozenset(path for change in changes for path in (change.path, change.origin) if path is not None)
        stale = stale_reads(manifest, written, lambda path: _content_at(view, path)) if target != run.base else []
        labelled = tuple(render_path(path) for path, _ in self._labelling.labelled_paths(changes))
        return Evidence(self._labelling.taint(run.run), self._labelling.label_of_changes(changes), labelled, manifest, tuple(stale))


def _content_at(view: Tree, path: bytes) -> str | None:
    """Return the identity of what a tree has at a path, None where it has nothing."""
    try:
        return view.attributes(node_at(view, path)).content.decode("ascii")
    except (NotFound, NotADirectory):
        return None
