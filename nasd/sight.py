"""What exists for whom: runs, branches and commits as one caller sees them.

1. What the caller may not see fails as if it did not exist.
2. A lease reaches its own run only; a principal reaches what the policy grants it, its own runs included.
3. It needs the state and nothing else, so the daemon and every gateway ask it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from interfaces.faults import Fault, Kind
from nasd.authority import Authority, gather, policy_in_force
from nasd.faults import refusal
from nasd.runs import MAIN, Run, Runs
from nasd.wiring import Appliance
from store.errors import NotFound
from store.model import Change, CommitId
from trust.model import Action, Effect, Identity, Record
from trust.policy import decide


@dataclass(frozen=True, slots=True)
class Sight:
    """The questions every operation and every door asks first."""

    appliance: Appliance
    runs: Runs

    def require(self, identity: Identity, action: Action, subject: str) -> None:
        """Return when the policy allows `action` (one that is not about a path). Raises the fault of the decision otherwise."""
        decision = decide(policy_in_force(self.appliance.trust), gather(identity, action, self.appliance.now()))
        if decision.effect is not Effect.ALLOW:
            raise refusal(decision, subject)

    def allows(self, identity: Identity, action: Action) -> bool:
        """Tell whether the policy allows `action` (one that is not about a path)."""
        return decide(policy_in_force(self.appliance.trust), gather(identity, action, self.appliance.now())).effect is Effect.ALLOW

    def run(self, identity: Identity, name: str) -> Run:
        """Return a run the caller may see. Raises `Kind.NOT_FOUND`."""
        run = self.runs.find(name)
        if not self.sees_run(identity, run):
            raise Fault(Kind.NOT_FOUND, f"{name}: no such run", hint="`nas run list` shows them")
        return run

    def own_run(self, identity: Identity, name: str, action: Action | None) -> Run:
        """Return a run the caller may act on: by the run's own lease when it carries `action` (None: any lease of it), or as its owner."""
        run = self.run(identity, name)
        if identity.lease is not None:
            self.authority(identity, run.branch).check()
            if action is not None and action not in identity.lease.scope.actions:
                raise Fault(
                    Kind.DENIED,
                    f"{action.value}: the lease {identity.lease.id} does not carry it",
                    hint="ask the owner for a lease that does",
                )
        elif identity.limits is not None and (action is None or action not in identity.limits.actions):
            raise Fault(
                Kind.DENIED,
                f"act on {run.run}: the app password does not carry it",
                hint="use a token of your own: `nas login` or `nas token issue`",
            )
        elif identity.principal.name != run.owner:
            self.require(identity, Action.ADMINISTER, f"act on {run.run}")
        return run

    def sees_run(self, identity: Identity, run: Run) -> bool:
        """Tell whether a run exists for the caller."""
        if identity.lease is not None:
            return identity.lease.run == run.run
        return identity.principal.name == run.owner or self.allows(identity, Action.OBSERVE)

    def visible_runs(self, identity: Identity) -> list[Run]:
        """Return the runs that exist for the caller."""
        return [run for run in self.runs.all() if self.sees_run(identity, run)]

    def branch(self, identity: Identity, name: str) -> str:
        """Return the branch a name or run id stands for. Raises `Kind.NOT_FOUND` also for what the caller may not see."""
        if name == MAIN:
            return MAIN
        run = self.runs.behind(name)
        if run is not None and self.sees_run(identity, run):
            return run.branch
        if run is None and identity.lease is None and self.allows(identity, Action.OBSERVE):
            return self.appliance.engine.branch(name).name
        raise Fault(Kind.NOT_FOUND, f"{name}: no such branch", hint="`nas run list` shows the runs and their branches")

    def commit(self, identity: Identity, text: str) -> CommitId:
        """Return the commit a text stands for, when the caller can reach it from a branch it sees. Raises `Kind.NOT_FOUND`."""
        missing = Fault(Kind.NOT_FOUND, f"{text}: no such commit, branch or snapshot", hint="`nas log` shows commits")
        run = self.runs.of_branch(text)
        if run is not None and not self.sees_run(identity, run):
            raise missing
        try:
            commit = self.appliance.engine.resolve(run.branch if run else text)
        except NotFound:
            raise missing from None
        if identity.lease is not None and not self._reaches(identity, commit):
            raise missing
        return commit

    def record_filter(self, identity: Identity) -> Callable[[Record], bool]:
        """Return what tells whether a record is for the caller to read: of its run and the ends of its gates; below the run's lease, of its
        own leases.

        For a principal everything passes: whether it may look at all, the policy says before.
        """
        lease = identity.lease
        if lease is None:
            return lambda _: True
        if lease.parent is None:
            return lambda record: record.run == lease.run or (record.kind == "gate.closed" and record.body.get("run") == lease.run)
        below = frozenset(self.appliance.trust.leases_below(lease.id))
        return lambda record: record.lease in below

    def authority(self, identity: Identity, branch: str) -> Authority:
        """Return the rights of a caller on a branch."""
        appliance = self.appliance
        return Authority(appliance.trust, appliance.clock, identity, protected=appliance.engine.branch(branch).protected)

    def visible(self, identity: Identity, changes: Iterable[Change]) -> list[Change]:
        """Return the changes whose paths exist for the caller; a rename from a hidden path shows no origin."""
        authority = self.authority(identity, MAIN)
        return [change for change in changes if _sees(authority, change.path)]

    def reads(self, identity: Identity, change: Change) -> bool:
        """Tell whether the caller may read the content on both sides of a change, which then is part of its run's taint."""
        authority = self.authority(identity, MAIN)
        sides = ((change.path, change.new), (change.origin or change.path, change.old))
        contents = [(path, side.content.encode("ascii")) for path, side in sides if side is not None]
        if not all(authority.allows(Action.READ, *_split(path)) for path, _ in contents):
            return False
        try:
            for path, content in contents:
                authority.demand_read(path, authority.label(path, content))
        except Fault as fault:
            if fault.kind not in (Kind.DENIED, Kind.GATED):
                raise
            return False
        return True

    def _reaches(self, identity: Identity, commit: CommitId) -> bool:
        assert identity.lease is not None
        engine = self.appliance.engine
        heads = [engine.branch(MAIN).head, engine.branch(self.runs.find(identity.lease.run).branch).head]
        return any(engine.is_ancestor(commit, head) for head in heads)


def _split(path: bytes) -> tuple[bytes, bytes | None]:
    directory, _, name = path.rpartition(b"/")
    return directory, name or None


def _sees(authority: Authority, path: bytes) -> bool:
    directory, name = _split(path)
    return authority.sees(directory, name, is_directory=False)
