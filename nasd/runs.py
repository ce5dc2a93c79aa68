"""The life of a run: request, start, work, commit, end.

1. A run owns one branch, ``<role>/<run id>``, and has one root lease: both exist, or neither: a restart undoes a half start.
2. A lease inside the policy's envelope is issued at once; outside it a gate asks, and the same request with that gate starts the run.
3. However a run ends, its work is committed first and its branch stays until `nasd.reclaim` may remove it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.asking import Asking, Permit
from nasd.authority import gather, policy_in_force
from nasd.faults import refusal
from nasd.ids import make_id
from nasd.labelling import Labelling
from nasd.paths import render_path
from nasd.run_request import Request, named_permit, question_of
from nasd.wiring import Appliance
from store.errors import NotFound
from store.model import CommitId, Committed, Note, Provenance
from trust.errors import Unknown
from trust.facts import judged
from trust.model import (
    Action,
    Decision,
    Effect,
    Facts,
    GateId,
    Identity,
    LeaseId,
    Principal,
    PrincipalKind,
    PrincipalName,
    RunId,
)
from trust.policy import decide, envelope

MAIN = "main"
_KIND = "run"
_BUCKET = "bucket"
_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Run:
    """One execution. `state` is active, ended, expired, revoked or trashed; times are seconds since the epoch.

    `bucket` is the other name its branch goes by, empty when it has none.
    """

    run: str
    role: str
    branch: str
    owner: str
    purpose: str
    lease: str
    base: str
    created: int
    state: str = "active"
    ended: int | None = None
    trashed: int | None = None
    reason: str = ""
    bucket: str = ""

    @property
    def provenance(self) -> Provenance:
        """Return what every commit of this run carries."""
        return Provenance(self.role, self.owner, self.run, self.lease)


class Runs:
    """Starts, commits, ends and finds runs. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Work on the state of `appliance`."""
        self._appliance = appliance
        self._engine = appliance.engine
        self._trust = appliance.trust
        self._labelling = Labelling(appliance)
        self._asking = Asking(appliance)
        self._naming = threading.Lock()
        self._active = {run.run: run for run in self.all() if run.state == "active"}
        self._known: dict[str, Run] = {}

    # -- finding --------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Run:
        """Return a run by its id or its branch. Raises `Kind.NOT_FOUND`."""
        try:
            return _run(self._trust.document(_KIND, name.rpartition("/")[2]).body)
        except Unknown:
            raise Fault(Kind.NOT_FOUND, f"{name}: no such run", hint="`nas run list` shows them") from None

    def of_branch(self, branch: str) -> Run | None:
        """Return the run that owns a branch, None when no run does."""
        try:
            run = self.find(branch)
        except Fault:
            return None
        return run if branch in (run.branch, run.run) else None

    def behind(self, name: str) -> Run | None:
        """Return the run whose branch, id or bucket is called `name`, None when no run is.

        What it says of the run's state may be old; whose it is and what its branch is called never changes.
        """
        if (run := self._known.get(name)) is not None:
            return run
        name = self._bucket_run(name) or name
        if (run := self._known.get(name) or self.of_branch(name)) is not None and len(self._known) < _KNOWN:
            self._known[name] = run
        return run

    def of_bucket(self, name: str) -> Run | None:
        """Return the run whose branch goes by the name of a bucket, None when none does."""
        run = self._bucket_run(name)
        return self.find(run) if run else None

    def _bucket_run(self, name: str) -> str:
        try:
            return str(self._trust.document(_BUCKET, name).body["run"])
        except Unknown:
            return ""

    def all(self) -> list[Run]:
        """Return every run, oldest first."""
        return sorted((_run(document.body) for document in self._trust.documents(_KIND)), key=lambda run: run.run)

    def active(self) -> list[Run]:
        """Return the runs under way; costs what they are, not what ever was."""
        return list(self._active.values())

    def is_active(self, run: str) -> bool:
        """Tell whether a run is under way."""
        return run in self._active

    # -- starting -------------------------------------------------------------------------------------------------

    def start(self, identity: Identity, request: Request, *, bucket: str = "") -> Document:
        """Start a run and return it with its secret, shown this once. A `bucket` is the name of a branch that begins empty.

        Raises `Kind.GATED` with the gate outside the envelope, `Kind.DENIED` when the policy refuses.
        """
        if identity.lease is not None:
            raise Fault(Kind.DENIED, "a lease cannot start runs", hint="narrow it for a sub-agent with `nas lease narrow`")
        principal = self._role(identity, request.role)
        now = self._appliance.now()
        request, permit, kept = self._permitted(identity, principal, request, now)
        run_id = make_id("r", self._appliance.clock(), self._appliance.entropy(4))
        base = "" if bucket else self._engine.branch(MAIN).head
        run = Run(
            run_id, principal.name, f"{principal.name}/{run_id}", identity.principal.name, request.purpose, "", base, now, bucket=bucket
        )
        body = asdict(run) | {"request": request.card(run.owner), "judged": kept}
        with recorded(self._trust, self._appliance.clock, "run.start", identity, body) as outcome:
            run, secret = self._create(identity, run, request, permit, now)
            outcome |= {"run": run.run, "lease": run.lease}
        scope = request.scope(now)
        return asdict(run) | {
            "secret": secret,
            "expires": scope.expires,
            "paths": list(scope.paths),
            "actions": sorted(a.value for a in scope.actions),
        }

    def _create(self, identity: Identity, run: Run, request: Request, permit: Permit | None, now: int) -> tuple[Run, str]:
        branch = self._engine.create_branch(run.branch, CommitId(run.base) if run.base else None, now)
        try:
            with self._trust.transaction():
                if permit is not None and permit.gate is not None:
                    taken = self._asking.acknowledge(permit.gate, permit.gate.act, identity)
                    self._asking.close(taken, f"run {run.run}", identity)
                lease, secret = self._trust.issue_lease(
                    RunId(run.run), PrincipalName(run.role), identity.principal.name, request.scope(now), now
                )
                run = replace(run, lease=lease.id, base=branch.base)
                self._trust.put_document(_KIND, run.run, asdict(run), 0)
                if run.bucket:
                    self._trust.put_document(_BUCKET, run.bucket, {"run": run.run}, 0)
        except Exception:
            self._engine.delete_branch(run.branch, self._engine.branch(run.branch).head)
            raise
        self._active[run.run] = run
        return run, secret

    def _role(self, identity: Identity, role: str) -> Principal:
        """Return the principal of a role; an owner's first run of a new role makes it known."""
        with self._naming:
            try:
                principal = self._trust.principal(role)
            except Unknown:
                principal = self._name(identity, role)
        if principal.disabled:
            raise Fault(Kind.DENIED, f"{role} is disabled", hint="use another role, or ask the owner")
        return principal

    def _name(self, identity: Identity, role: str) -> Principal:
        if "owner" not in identity.roles:
            raise Fault(Kind.NOT_FOUND, f"{role}: no such principal", hint="the owner adds it with `nas principal add`") from None
        with recorded(self._trust, self._appliance.clock, "principal.add", identity, {"principal": role, "kind": "agent"}):
            return self._trust.add_principal(role, PrincipalKind.AGENT, self._appliance.now())

    def _permitted(
        self, identity: Identity, principal: Principal, request: Request, now: int
    ) -> tuple[Request, Permit | None, Mapping[str, Any]]:
        """Return the request with what it left open filled in, what permitted it, when a rule asked, and what the record keeps of that.

        In the facts of a start the principal is the role, `on_behalf_of` and the roles are the requester's.
        """
        policy = policy_in_force(self._trust)
        subject = Identity(principal, identity.roles)

        def facts(asked: Request, gate: GateId | None) -> Facts:
            return gather(
                subject,
                Action.START,
                now,
                request=asked.scope(now),
                label=self._labelling.label_reachable(asked.scope(now)),
                outward=Action.EGRESS in asked.actions,
                on_behalf_of=identity.principal.name,
                gate=gate,
            )

        request = request.filled(envelope(policy, facts(request, None), request.scope(now)))
        asked = facts(request, None)
        decision, permit = decide(policy, asked), None
        if decision.effect is Effect.GATE:
            permit = self._permit(identity, request, decision, judged(policy.hash, asked, decision), now)
            asked = replace(asked, gate=permit.id)
            decision = decide(policy, asked)
        kept = judged(policy.hash, asked, decision)
        if decision.effect is Effect.ALLOW:
            return request, permit, kept
        self._trust.state("denied", identity, {"action": Action.START.value, "rule": decision.rule, "judged": kept}, now)
        raise refusal(decision, f"start a run of {request.role}")

    def _permit(self, identity: Identity, request: Request, decision: Decision, kept: Mapping[str, Any], now: int) -> Permit:
        """Return what lets a request start that a rule asks about. Raises `Kind.GATED` when people have to answer first."""
        question = question_of(request, identity.principal.name, decision, kept["policy"])
        named = self._trust.gate(GateId(request.gate)) if request.gate is not None else None
        permit = named_permit(named, question, now) if named is not None else self._asking.permit(question, decision)
        if permit is None:
            gate = self._asking.ask(question, identity, kept)
            fault = self._asking.gated(gate, decision)
            hint = f"when {gate.required_role} approved {gate.id}, repeat the request with --gate {gate.id}"
            raise Fault(Kind.GATED, fault.message, gate=gate.id, policy=fault.policy, hint=hint)
        if permit.bypasses:
            self._asking.note_bypass(permit, question, identity)
        return permit

    # -- working --------------------------------------------------------------------------------------------------

    def commit(self, run: Run, identity: Identity | None, message: str) -> Document:
        """Commit what the run changed; with nothing changed return the head and ``changed`` 0."""
        if run.branch not in self._engine.dirty():
            return self._committed(run, None)
        head = self._engine.branch(run.branch).head
        body = {"run": run.run, "branch": run.branch, "expected": head, "message": message}
        with recorded(self._trust, self._appliance.clock, "commit", identity, body) as outcome:
            done = self._engine.commit(run.branch, Note(message, run.provenance, self._appliance.now()))
            outcome["commit"] = done.id if done else head
            if done is not None:
                self._labelling.label_commit(run.run, head, done.id)
        return self._committed(run, done)

    def _committed(self, run: Run, done: Committed | None) -> Document:
        return {
            "commit": done.id if done else self._engine.branch(run.branch).head,
            "branch": run.branch,
            "changed": done.changed if done else 0,
            "twins": [[render_path(name) for name in group] for group in done.twins] if done else [],
            "left_out": [render_path(path) for path in done.left_out] if done else [],
        }

    # -- ending ---------------------------------------------------------------------------------------------------

    def end(self, run: Run, identity: Identity | None, state: str = "ended", reason: str = "the run ended") -> Document:
        """Commit what is left, revoke the lease and close the run. Repeats return the same."""
        if run.state != "active":
            return {"run": run.run, "state": run.state, "commit": self._head(run), "left_out": []}
        with recorded(
            self._trust, self._appliance.clock, "run.end", identity, {"run": run.run, "state": state, "reason": reason}
        ) as outcome:
            committed = self.commit(run, identity, "work left when the run ended")
            now = self._appliance.now()
            with self._trust.transaction():
                self._trust.revoke_lease(LeaseId(run.lease), reason, now)
                self.save(replace(run, state=state, ended=now, reason=reason))
            outcome["commit"] = committed["commit"]
        return {"run": run.run, "state": state, "commit": committed["commit"], "left_out": committed["left_out"]}

    def drop_bucket(self, run: Run) -> None:
        """Take the name of its bucket from a run."""
        with self._trust.transaction():
            self._trust.remove_document(_BUCKET, run.bucket, self._trust.document(_BUCKET, run.bucket).version)
            self.save(replace(run, bucket=""))

    def save(self, run: Run) -> None:
        """Store a changed run. Raises `trust.errors.Outdated` when somebody else changed it meanwhile."""
        document = self._trust.document(_KIND, run.run)
        self._trust.put_document(_KIND, run.run, asdict(run), document.version)
        if run.state == "active":
            self._active[run.run] = run
        else:
            self._active.pop(run.run, None)

    def _head(self, run: Run) -> str | None:
        try:
            return self._engine.branch(run.branch).head
        except NotFound:
            return None


def _run(body: Mapping[str, Any]) -> Run:
    return Run(**body)
