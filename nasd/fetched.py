"""What a remote sent, on its way into a run's branch: it continues the branch, or is merged with it.

1. Either way it is a push by the remote: every path is decided, charged and labelled as if the run had pushed it.
2. A history that went another way since both were one comes in on a branch of its own (`PREFIX`), which is merged and removed. Conflicts
   are named by their paths and leave the run's branch as it was; a branch that a crash left is removed at the next start.
3. Where something is left out of what the caller sees, ids differ from the remote's: then only what continues the branch is taken in.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.desk import Desk
from nasd.ids import make_id
from nasd.labelling import Labelling
from nasd.operations.git import Push
from nasd.paths import render_path
from nasd.readable import readable_by
from nasd.repositories import HEADS
from nasd.runs import Run
from nasd.wiring import Appliance
from store.errors import HostileTree, Moved
from store.exchange import Exchange, Limits, Selection, Shown
from store.model import CommitId, Note
from trust.accounts import Account
from trust.model import Identity

PREFIX = "fetched/"
_LIMITS = Limits()
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Fetched:
    """A commit in a quarantine; `base` is the best commit that it shares with the run's branch, empty when there is none."""

    desk: Desk
    identity: Identity
    run: Run
    account: Account
    exchange: Exchange
    quarantine: Path
    commit: str
    base: str

    def take_in(self, shown: Shown) -> Document:
        """Bring the commit into the run's branch. Raises `Kind.CONFLICT`, and the fault of the first path that is not allowed."""
        if shown.has_commit(self.commit):
            return {"commit": self._head(), "commits": 0, "notices": ["nothing that is not here already"]}
        try:
            return self._push(shown, self.run)
        except Moved:
            return self._merge(shown)
        except HostileTree as hostile:
            raise Fault(Kind.INVALID, f"this cannot be taken in: {hostile}", hint="it stays where it is") from hostile

    def _push(self, shown: Shown, run: Run) -> Document:
        arrival = self.exchange.examine(self.quarantine.name, shown, run.branch, self.commit, _LIMITS)
        push = Push(self.desk, self.identity, run, arrival, pointers_stay=True)
        done = push.take_in({"new": self.commit, "options": [f"account={self.account.name}"]})
        return {"commit": done["commit"], "commits": len(arrival.commits), "notices": done["notices"]}

    def _merge(self, shown: Shown) -> Document:
        appliance, head = self.desk.appliance, self._head()
        if not self.base or shown.refs[HEADS + self.run.branch] != head:
            raise Fault(
                Kind.CONFLICT,
                f"the remote's branch and {self.run.branch} have no commit in common"
                if not self.base
                else f"the remote's branch does not continue {self.run.branch}, of which you see a part",
                hint="fetch into a run that has no work of its own yet",
            )
        branch = make_id(PREFIX, appliance.clock(), appliance.entropy(4))
        appliance.engine.create_branch(branch, CommitId(self.base), appliance.now())
        try:
            done = self._push_beside(shown, branch)
            return done | {"commit": self._join(head, CommitId(done["commit"]))}
        finally:
            appliance.engine.delete_branch(branch, appliance.engine.branch(branch).head)

    def _push_beside(self, shown: Shown, branch: str) -> Document:
        readable = readable_by(self.desk.appliance.trust, self.identity, self.desk.appliance.now())
        refs = {**shown.refs, HEADS + branch: CommitId(self.base)}
        with closing(self.exchange.show(refs, HEADS + branch, Selection(readable.name, readable))) as beside:
            return self._push(beside, replace(self.run, branch=branch))

    def _join(self, head: CommitId, fetched: CommitId) -> CommitId:
        """Merge what came into the run's branch and return its head."""
        appliance, run = self.desk.appliance, self.run
        note = Note(f"Merge what {self.account.name} has", run.provenance, appliance.now())
        body = {"run": run.run, "branch": run.branch, "expected": head, "message": note.message}
        with recorded(appliance.trust, appliance.clock, "commit", self.identity, body) as outcome:
            try:
                merged = appliance.engine.merge(run.branch, head, fetched, note)
            except Moved:
                raise Fault(Kind.CONFLICT, f"{run.branch} changed while it was merged", hint="fetch again") from None
            if merged.commit is None:
                paths = ", ".join(render_path(conflict.path) for conflict in merged.conflicts[:_MOST_NAMED])
                raise Fault(
                    Kind.CONFLICT, f"both sides changed {paths}", hint="make these files as the remote has them, or fetch into another run"
                )
            outcome["commit"] = merged.commit
            Labelling(appliance).label_commit(run.run, head, merged.commit)
        return merged.commit

    def _head(self) -> CommitId:
        return self.desk.appliance.engine.branch(self.run.branch).head


def remove_leftovers(appliance: Appliance) -> list[str]:
    """Remove the branches of fetches that a crash cut off, and return a line for each."""
    left = appliance.engine.branches(PREFIX)
    for branch in left:
        appliance.engine.delete_branch(branch.name, branch.head)
    return [f"{branch.name}: what a fetch had brought and not merged is removed" for branch in left]
