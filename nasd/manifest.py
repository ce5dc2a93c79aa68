"""What a run has read, out of its records: for the card of its proposal, and to see whether it has changed since.

1. Costs what the run read, and is bounded: beyond `LIMIT` entries only their number is told, and staleness looks at those that are named.
2. A read is stale when the target holds another content at its path than the one that was read, and the run did not write that path itself.
3. What other processes gathered reaches the record within a second; see `docs/limits.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nasd.paths import parse_path
from trust.labels import Label
from trust.model import Record

LIMIT = 10_000
SHOWN = 20
"""How many paths a summary names."""


@dataclass(slots=True)
class Manifest:
    """The reads of one run, joined: path to the contents that were seen there; how often; what lies beyond the limit."""

    seen: dict[str, set[str]] = field(default_factory=dict)
    times: int = 0
    beyond: int = 0
    taints: list[Mapping[str, str]] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Take a record of the run; only those of reads and of taint say something."""
        if record.kind == "taint":
            self.taints.append({"path": str(record.body["path"]), "label": str(record.body["label"])})
        if record.kind != "reads":
            return
        self.beyond += int(record.body.get("beyond", 0))
        for read in record.body.get("reads", ()):
            self.times += int(read["times"])
            if read["path"] in self.seen or len(self.seen) < LIMIT:
                self.seen.setdefault(read["path"], set()).add(str(read.get("content", "")))
            else:
                self.beyond += 1


def read_manifest(records: Iterable[Record]) -> Manifest:
    """Return the manifest of the records of one run."""
    manifest = Manifest()
    for record in records:
        manifest.add(record)
    return manifest


def stale_reads(manifest: Manifest, written: frozenset[bytes], content_at: Callable[[bytes], str | None]) -> list[str]:
    """Return the paths whose content was read and is another now; `content_at` tells what a path holds, None for nothing."""
    return [path for path, contents in sorted(manifest.seen.items()) if _is_stale(path, contents, written, content_at)]


def _is_stale(path: str, contents: set[str], written: frozenset[bytes], content_at: Callable[[bytes], str | None]) -> bool:
    committed = {
        content for content in contents if content and "-" not in content
    }  # the run's own unfinished work is no read of the target
    raw = parse_path(path)
    return bool(committed) and raw not in written and content_at(raw) not in committed


def summarise_reads(manifest: Manifest, stale: list[str]) -> dict[str, Any]:
    """Return what a card says about what was read."""
    return {
        "files": len(manifest.seen) + manifest.beyond,
        "times": manifest.times,
        "paths": sorted(manifest.seen)[:SHOWN],
        "beyond": max(0, len(manifest.seen) - SHOWN) + manifest.beyond,
        "stale": stale[:SHOWN],
        "stale_beyond": max(0, len(stale) - SHOWN),
    }


def words(label: Label) -> dict[str, str]:
    """Return a label as a document."""
    return {"origin": label.origin.name.lower(), "sensitivity": label.sensitivity.name.lower()}
