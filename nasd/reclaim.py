"""Giving disk back: only what is provably merged, or past its time after a stay in the trash.

1. A branch whose run ended and whose content `main` holds (squashed merges count) may go at once.
2. Any other ended branch goes to the trash when its TTL has passed, and from there after the trash period. Until then
   `nas run checkout` brings everything back. What is uncommitted was committed when the run ended; a branch with
   uncommitted work is kept whatever its age.
3. The branch of a bucket stays until the bucket is deleted.
4. Every removal is recorded before it happens; a dry run changes nothing and says the same.
"""

from __future__ import annotations

from dataclasses import replace

from interfaces.port import Document
from nasd.acts import recorded
from nasd.runs import MAIN, Run, Runs
from nasd.wiring import Appliance
from store.errors import NotFound
from trust.model import Identity

GONE = "removed"


class Reclaim:
    """Decides what may go and removes it."""

    def __init__(self, appliance: Appliance, runs: Runs) -> None:
        """Work on the state of `appliance`."""
        self._appliance = appliance
        self._engine = appliance.engine
        self._runs = runs

    def collect(self, identity: Identity | None, *, dry_run: bool) -> Document:
        """Remove, or with `dry_run` only name, what may go; return what went, what moved to the trash, what stayed and why."""
        removed: list[Document] = []
        trashed: list[Document] = []
        kept: list[Document] = []
        for run in self._runs.all():
            verdict, why = self._judge(run)
            if verdict == "remove":
                removed.append(self._remove(run, why, identity, dry_run=dry_run))
            elif verdict == "trash":
                trashed.append(self._trash(run, why, identity, dry_run=dry_run))
            elif verdict == "keep":
                kept.append({"branch": run.branch, "run": run.run, "why": why})
        freed = sum(item["bytes"] for item in removed)
        if not dry_run:
            freed += self._engine.maintain(self._appliance.now()).bytes
        return {"dry_run": dry_run, "removed": removed, "trashed": trashed, "kept": kept, "bytes": freed}

    def _judge(self, run: Run) -> tuple[str, str]:
        """Return remove, trash, keep or gone, and why."""
        now = self._appliance.now()
        settings = self._appliance.settings
        if run.state == GONE or not self._exists(run):
            return "gone", ""
        if run.state == "active":
            return "keep", "the run is active"
        if run.bucket:
            return "keep", f"it is the bucket {run.bucket}"
        if run.branch in self._engine.dirty():
            return "keep", "it holds uncommitted work"
        if not self._engine.unmerged(run.branch, MAIN):
            return "remove", f"everything in it is in {MAIN}"
        if run.trashed is not None:
            over = now >= run.trashed + settings.trash_period
            return ("remove", "its time in the trash is over") if over else ("keep", "it is in the trash and can be restored")
        if now >= (run.ended or now) + settings.branch_ttl:
            return "trash", "its time to live is over and it is not merged"
        return "keep", "it is not merged"

    def _exists(self, run: Run) -> bool:
        try:
            self._engine.branch(run.branch)
        except NotFound:
            return False
        return True

    def _remove(self, run: Run, why: str, identity: Identity | None, *, dry_run: bool) -> Document:
        size = self._engine.size(run.branch)
        if not dry_run:
            head = self._engine.branch(run.branch).head
            body = {"run": run.run, "branch": run.branch, "head": head, "why": why}
            with recorded(self._appliance.trust, self._appliance.clock, "branch.remove", identity, body):
                self._engine.delete_branch(run.branch, head)
                self._runs.save(replace(run, state=GONE))
        return {"branch": run.branch, "run": run.run, "why": why, "bytes": size}

    def _trash(self, run: Run, why: str, identity: Identity | None, *, dry_run: bool) -> Document:
        if not dry_run:
            with recorded(
                self._appliance.trust, self._appliance.clock, "branch.trash", identity, {"run": run.run, "branch": run.branch, "why": why}
            ):
                self._runs.save(replace(run, trashed=self._appliance.now()))
        return {"branch": run.branch, "run": run.run, "why": why}
