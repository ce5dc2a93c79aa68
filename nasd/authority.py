"""What one caller may do on one branch: facts gathered, decided purely, cached under an epoch.

1. `Authority` never decides by itself: it gathers facts, asks `trust.policy.decide` and keeps the answer until the epoch moves.
2. The epoch moves when a lease, the policy, a gate, a principal or a token changes, in any process; time is read anew on
   every call, so that a lease ends in the middle of an open mount.
3. Denials are counted into a bounded accumulator; `flush` writes them to the record.
4. What a run reads joins its taint, durably and for every process, before the bytes go anywhere. A read that people have to allow
   is asked about once, and repeats of it are let through for as long as their yes counts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace

from interfaces.faults import Fault, Kind
from nasd.acts import Clock
from nasd.faults import refusal
from nasd.paths import render_path
from trust.cache import DecisionCache
from trust.denials import Denials
from trust.errors import PolicyInvalid
from trust.facts import judged
from trust.labels import DEFAULT, Label
from trust.leases import lease_state
from trust.model import (
    Action,
    BudgetKind,
    ChangeFacts,
    Decision,
    Effect,
    Epoch,
    Facts,
    GateId,
    Identity,
    LeaseState,
    PrincipalName,
    Scope,
)
from trust.policy import CompiledPolicy, decide, empty_policy, path_set
from trust.policy.patterns import PathSet
from trust.service import Trust

log = logging.getLogger("nasd.authority")

Answer = Callable[[Identity, CompiledPolicy, Facts, Decision], Decision]
"""What people have said to an act that a rule asks about; raises `Kind.GATED` while they have not answered."""


def gather(
    identity: Identity,
    action: Action,
    now: int,
    *,
    path: bytes | None = None,
    protected: bool = False,
    left: Mapping[BudgetKind, int] | None = None,
    needs: Mapping[BudgetKind, int] | None = None,
    change: ChangeFacts | None = None,
    request: Scope | None = None,
    gate: GateId | None = None,
    on_behalf_of: PrincipalName | None = None,
    taint: Label = DEFAULT,
    label: Label = DEFAULT,
    outward: bool | None = None,
    destination: str = "",
) -> Facts:
    """Return the facts of one question, with nothing missing.

    `on_behalf_of` defaults to whom the lease is for, `outward` to whether the lease carries an outward action.
    """
    lease = identity.lease
    if on_behalf_of is None:
        on_behalf_of = lease.on_behalf_of if lease else PrincipalName("")
    return Facts(
        now=now,
        principal=identity.principal.name,
        kind=identity.principal.kind,
        roles=identity.roles,
        on_behalf_of=on_behalf_of,
        action=action,
        path=path,
        lease=identity.scope,
        lease_state=lease_state(lease, now) if lease else LeaseState.LIVE if identity.limits else None,
        left=left or {},
        needs=needs or {},
        protected=protected,
        change=change,
        request=request,
        gate=gate,
        disabled=identity.principal.disabled,
        taint=taint,
        label=label,
        outward=outward if outward is not None else lease is not None and Action.EGRESS in lease.scope.actions,
        destination=destination,
    )


def policy_in_force(trust: Trust) -> CompiledPolicy:
    """Return the adopted policy; one that this release cannot read grants nothing, and leaves the owner what is built in."""
    try:
        return trust.policy()
    except PolicyInvalid as error:
        log.error("the adopted policy cannot be read and grants nothing: %s", error)
        return empty_policy("unreadable")


class Authority:
    """The rights of one identity on one branch. Any thread may call."""

    def __init__(self, trust: Trust, clock: Clock, identity: Identity, *, protected: bool, answer: Answer | None = None) -> None:
        """Speak for `identity` (with its lease, when it has one); `protected` tells whether the branch moves only by merges.

        `answer` says what people have said to a read that a rule asks about; without it such a read is refused.
        """
        self._trust = trust
        self._ledger = trust.ledger
        self._answer = answer
        self._clock = clock
        self._protected = protected
        self._cache = DecisionCache()
        self._denials = Denials()
        self._lock = threading.Lock()
        self._epoch = Epoch(-1)
        self.identity = identity
        self._policy = policy_in_force(trust)
        self._subject = identity.lease.id if identity.lease else identity.principal.name
        self._taint = DEFAULT
        self._refresh()

    @property
    def taint(self) -> Label:
        """Return the join of what the run has read so far; `DEFAULT` for who has no run."""
        self._refresh()
        return self._taint

    @property
    def policy(self) -> CompiledPolicy:
        """Return the policy in force."""
        self._refresh()
        return self._policy

    def check(self) -> None:
        """Raise the fault of an authority that ended: `Kind.EXPIRED`, `Kind.REVOKED`, `Kind.DENIED` for a disabled principal."""
        self._refresh()
        lease = self.identity.lease
        if self.identity.principal.disabled:
            raise Fault(Kind.DENIED, f"{self.identity.principal.name} is disabled", hint="ask the owner")
        if lease is None:
            return
        state = lease_state(lease, int(self._clock()))
        if state is LeaseState.REVOKED:
            raise Fault(Kind.REVOKED, f"lease {lease.id} was revoked: {lease.reason or 'no reason given'}", hint="ask the owner")
        if state is LeaseState.EXPIRED:
            raise Fault(Kind.EXPIRED, f"lease {lease.id} has expired", hint="start another run, or ask the owner for a longer lease")
        if state is LeaseState.PENDING:
            raise Fault(Kind.DENIED, f"lease {lease.id} is not valid yet", hint="wait until its first second")

    def decide(self, action: Action, directory: bytes, name: bytes | None) -> Decision:
        """Return the decision about a name in a directory (None: about the directory itself)."""
        self._refresh()
        if name is None:
            directory, name = _split(directory)
        now = int(self._clock())
        if not name:
            return decide(self._policy, self._facts(action, now, b""))
        cached = self._cache.find(self._epoch, self._subject, action, directory, name, now)
        if cached is not None:
            return cached
        facts = self._facts(action, now, _join(directory, name))
        decision = decide(self._policy, facts)
        self._cache.keep(self._epoch, self._subject, directory, name, self._policy, facts, decision)
        return decision

    def allows(self, action: Action, directory: bytes, name: bytes | None) -> bool:
        """Tell whether the action would be allowed, without counting a denial."""
        return self.decide(action, directory, name).effect is Effect.ALLOW

    def demand(self, action: Action, directory: bytes, name: bytes | None) -> None:
        """Return when the action is allowed. Raises the fault of the decision otherwise and counts the denial."""
        decision = self.decide(action, directory, name)
        if decision.effect is Effect.ALLOW:
            return
        path = _join(directory, name)
        self._count_denial(path, decision, self._facts(action, int(self._clock()), path))
        raise refusal(decision, f"{action.value} {render_path(path)}")

    def label(self, path: bytes, content: bytes) -> Label:
        """Return the label of bytes at a path; `content` is empty for what has none."""
        self._refresh()
        return self._ledger.label(self._policy, path, content)

    def label_below(self, directory: bytes) -> Label:
        """Return a label that nothing at or below a directory is above."""
        self._refresh()
        return self._ledger.label_below(self._policy, directory)

    def labels_below(self, directory: bytes) -> bool:
        """Tell whether something below a directory may have a label; costs microseconds."""
        self._refresh()
        return self._ledger.labels_below(self._policy, directory)

    def taint_of(self, branch: str) -> Label:
        """Return the join of what the run of a branch has read; `DEFAULT` for one that nobody works on."""
        run, lease = branch.rpartition("/")[2], self.identity.lease
        if self._protected:
            return DEFAULT
        return self.taint if lease is not None and lease.run == run else self._ledger.taint(run)

    def now(self) -> int:
        """Return the time in whole seconds since the epoch."""
        return int(self._clock())

    def demand_read(self, path: bytes, label: Label) -> None:
        """Return when content with a label may be read, which then is part of the run's taint. Raises as `demand`."""
        directory, name = _split(path)
        if label == DEFAULT:
            self.demand(Action.READ, directory, name or None)
        else:
            self._demand_labelled(path, label)
        self.observe(label, path)

    def demand_history(self, label: Label) -> None:
        """Return when a copy of everything the lease reaches may be had, whose label then is part of the run's taint. Raises as `demand`.

        Which paths are in it is decided elsewhere; here it is about what they are labelled together, at a path of which reading is granted.
        """
        if label == DEFAULT or self.identity.lease is None:
            return
        self._demand_labelled(self._readable_sample(), label)
        self.observe(label, b"")

    def _readable_sample(self) -> bytes:
        """Return a path that the lease and the policy let be read as long as nothing is labelled; the root when none is found."""
        texts = [pattern.text for grant in self.policy.grants_of[Action.READ] for pattern in grant.paths.patterns]
        samples = [text.replace("*", "x").replace("?", "x").encode() for text in (*self._scope_texts(), *texts)]
        facts = gather(self.identity, Action.READ, self.now(), path=b"")
        return next((path for path in samples if decide(self._policy, replace(facts, path=path)).effect is Effect.ALLOW), b"")

    def observe(self, label: Label, path: bytes) -> None:
        """Join what was learned into the run's taint; a rise is recorded, and on stable storage when this returns."""
        lease = self.identity.lease
        if lease is None or label.within(self._taint):
            return
        with self._trust.transaction():
            self._taint = self._ledger.raise_taint(lease.run, label)
            self._trust.state(
                "taint", self.identity, {"run": lease.run, "path": render_path(path), "label": str(label)}, int(self._clock())
            )

    def observe_names(self, directory: bytes) -> None:
        """Join the label of knowing what is in a directory into the run's taint."""
        if self.policy.labels_names:
            self.observe(self._policy.label_of_names(directory), directory)

    def _demand_labelled(self, path: bytes, label: Label) -> None:
        """Decide about content that is labelled: anew each time, since the answer is about exactly this label."""
        self._refresh()
        facts = replace(self._facts(Action.READ, int(self._clock()), path), label=label)
        decision = decide(self._policy, facts)
        if decision.effect is Effect.GATE and self._answer is not None and self.identity.lease is not None:
            decision = self._answer(self.identity, self._policy, facts, decision)
        if decision.effect is not Effect.ALLOW:
            self._count_denial(path, decision, facts)
            raise refusal(decision, f"{Action.READ.value} {render_path(path)}")

    def sees(self, directory: bytes, name: bytes | None, *, is_directory: bool) -> bool:
        """Tell whether a name exists for this caller: it may be listed, or something below it may.

        Raises as `check`: an authority that ended is told so, and not shown an empty branch, which a mirror takes for an order to delete.
        """
        if self.allows(Action.LIST, directory, name):
            return True
        self.check()
        return is_directory and self._leads_somewhere(_join(directory, name))

    def sees_all(self, directory: bytes) -> bool:
        """Tell whether every name that is or could be directly in the directory is visible, so that a listing needs no filter."""
        return self._uniform(Action.LIST, directory) and self.allows(Action.LIST, directory, b"\x00")

    def covers_below(self, action: Action, directory: bytes) -> bool:
        """Tell whether the lease carries the action on everything that is or could be below the directory."""
        return self._scope().uniform_subtree(directory) and self.allows(action, directory, None)

    def may_somewhere(self, action: Action) -> bool:
        """Tell whether there may be a path on which the action is allowed."""
        scope = self.identity.scope
        return (scope is None or action in scope.actions) and self.policy.may_grant_below(action, b"")

    def same_below(self, one: bytes, other: bytes) -> bool:
        """Tell whether the policy treats everything that could be below two directories alike, so that a move changes no decision."""
        return self.policy.same_below(one, other)

    def flush(self, *, everything: bool = False) -> None:
        """Write the denials whose minute is over (or `everything`) to the record."""
        now = int(self._clock())
        for denied in self._denials.take(None if everything else now):
            if denied.count > 1:
                self._trust.state("denied", self.identity, asdict(denied) | {"count": denied.count - 1}, now)

    def _count_denial(self, path: bytes, decision: Decision, facts: Facts) -> None:
        """Record the first denial of its kind at once, with its facts; `flush` tells how often it happened again."""
        now, action = int(self._clock()), facts.action.value
        with self._lock:
            first = self._denials.add(self._subject, action, render_path(path), decision.rule, now)
        if first:
            body = {"lease": self._subject, "action": action, "path": render_path(path), "rule": decision.rule, "count": 1}
            kept = judged(self._policy.hash, facts, decide(self._policy, facts))
            self._trust.state("denied", self.identity, body | {"judged": kept}, now)

    def _facts(self, action: Action, now: int, path: bytes) -> Facts:
        return gather(self.identity, action, now, path=path, protected=self._protected, taint=self._taint)

    def _scope_texts(self) -> tuple[str, ...]:
        scope = self.identity.scope
        return scope.paths if scope else ("**",)

    def _scope(self) -> PathSet:
        return path_set(self._scope_texts())

    def _uniform(self, action: Action, directory: bytes) -> bool:
        return self._policy.uniform_below(action, directory) and self._scope().uniform_below(directory)

    def _leads_somewhere(self, path: bytes) -> bool:
        return self._scope().may_match_below(path) and self._policy.may_grant_below(Action.LIST, path)

    def _refresh(self) -> None:
        epoch = self._trust.epoch()
        if epoch == self._epoch:
            return
        self._policy = policy_in_force(self._trust)
        principal = self._trust.principal(self.identity.principal.name)
        lease = self._trust.lease(self.identity.lease.id) if self.identity.lease else None
        self.identity = replace(self.identity, principal=principal, roles=self._trust.roles(principal), lease=lease)
        self._taint = self._ledger.taint(lease.run) if lease else DEFAULT
        self._epoch = epoch


def _split(path: bytes) -> tuple[bytes, bytes]:
    directory, _, name = path.rpartition(b"/")
    return directory, name


def _join(directory: bytes, name: bytes | None) -> bytes:
    if name is None:
        return directory
    return directory + b"/" + name if directory else name
