"""What the daemon does by itself: automatic commits, ends of leases, deadlines of gates, tidying.

1. One thread, one tick every quarter of a second; a job that fails is logged and tried again at the next tick.
2. A branch is committed when it has been quiet for the configured delay; one that never rests is committed every thirty delays.
3. A run whose lease ended is closed: its work is committed, its mounts go, its branch stays.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from interfaces.faults import Fault
from nasd.faults import as_fault
from nasd.gates import Gates
from nasd.idempotency import KEPT_SECONDS, forget_answers
from nasd.logs import rotate_logs
from nasd.mounts import Mounts
from nasd.runs import Run, Runs
from nasd.wiring import Appliance
from store.errors import StoreError
from store.model import Version
from trust.errors import TrustError, Unknown
from trust.leases import lease_state
from trust.model import Epoch, Identity, LeaseId, LeaseState, PrincipalName

TICK = 0.25
HOUR = 3600
TIDY_SECONDS = 300
SERVICE = PrincipalName("svc:nas")
_PATIENCE = 30
log = logging.getLogger("nasd.jobs")


class Jobs:
    """The daemon's own work, in one thread."""

    def __init__(self, appliance: Appliance, runs: Runs, gates: Gates, mounts: Mounts) -> None:
        """Work on the state of `appliance` through its services, as the service principal."""
        self._appliance = appliance
        self._runs = runs
        self._gates = gates
        self._mounts = mounts
        self._seen: dict[str, tuple[Version, float, float]] = {}
        self._epoch: Epoch | None = None
        self._next_expiry = 0
        self._next_tidying = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the tick under way."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def tick(self) -> None:
        """Do everything that is due now."""
        for job in (self.commit_quiet, self.close_ended, self._gates.tick, self.tidy):
            self._attempt(job)

    def commit_quiet(self) -> None:
        """Commit every branch of an active run that has been quiet long enough."""
        now = self._appliance.clock()
        delay = self._appliance.settings.quiet_delay
        dirty = self._appliance.engine.dirty()
        self._seen = {branch: seen for branch, seen in self._seen.items() if branch in dirty}
        for branch, version in dirty.items():
            known, changed, first = self._seen.get(branch, (None, now, now))
            if known != version:
                changed = now
            self._seen[branch] = (version, changed, first)
            if now - changed >= delay or now - first >= delay * _PATIENCE:
                self._commit(branch)

    def close_ended(self) -> None:
        """Close the runs whose lease expired or was revoked; looks only when a lease changed or the next one is due."""
        now, epoch = self._appliance.now(), self._appliance.trust.epoch()
        if epoch == self._epoch and now < self._next_expiry:
            return
        expiries = [self._close_if_ended(run, now) for run in self._runs.active()]
        self._epoch, self._next_expiry = epoch, min(expiries, default=now + HOUR)

    def tidy(self) -> None:
        """Every few minutes begin long logs anew, and forget the answers that were kept for repeats of a request and are old."""
        now = self._appliance.now()
        if now < self._next_tidying:
            return
        self._next_tidying = now + TIDY_SECONDS
        for path in rotate_logs(self._appliance.settings.log):
            log.info("%s was long and began anew", path.name)
        forget_answers(self._appliance.trust, now - KEPT_SECONDS)

    def _close_if_ended(self, run: Run, now: int) -> int:
        """Return when the run's lease expires."""
        lease = self._appliance.trust.lease(LeaseId(run.lease))
        state = lease_state(lease, now)
        if state in (LeaseState.EXPIRED, LeaseState.REVOKED):
            self._runs.end(run, self._identity(), state.value, lease.reason or f"its lease {state.value}")
            self._mounts.remove_run(run.run)
        return max(lease.scope.expires, now + 1)

    def _commit(self, branch: str) -> None:
        run = self._runs.of_branch(branch)
        if run is not None:
            self._runs.commit(run, self._identity(), "automatic commit")
        self._seen.pop(branch, None)

    def _identity(self) -> Identity | None:
        try:
            principal = self._appliance.trust.principal(SERVICE)
        except Unknown:
            return None
        return Identity(principal, self._appliance.trust.roles(principal))

    def _attempt(self, job: Callable[[], None]) -> None:
        try:
            job()
        except (Fault, StoreError, TrustError, OSError) as error:
            log.error("%s: %s", job.__name__, as_fault(error).message)

    def _loop(self) -> None:
        while not self._stop.wait(TICK):
            self.tick()
