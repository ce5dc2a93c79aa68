"""Bypasses: a rule that asks nobody for a while, because the owner says so. It hides nothing.

1. Only a person with the role ``owner`` opens one, with a reason, for at most a day; it covers one rule that asks, as that rule reads in
   the policy of that moment: another policy ends it. A rule that refuses cannot be bypassed.
2. Opening and ending are recorded, and so is every act under it, with its id.
"""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.authority import policy_in_force
from nasd.outbox import enqueue_bypass
from nasd.views import view_bypass
from nasd.wiring import Appliance
from trust.model import GateId, Identity
from trust.policy import CompiledPolicy
from trust.policy.decide import ENVELOPE, RULE_OF_TWO


class Bypasses:
    """Opens, lists and ends bypasses. Any thread may call."""

    def __init__(self, appliance: Appliance) -> None:
        """Work on the state of `appliance`."""
        self._appliance = appliance
        self._trust = appliance.trust

    def open(self, identity: Identity, rule: str, seconds: int, reason: str) -> Document:
        """Open a bypass of a rule. Raises `Kind.NOT_FOUND`, `Kind.INVALID`, and `trust.errors.NotEntitled`, `ScopeInvalid`."""
        policy = policy_in_force(self._trust)
        require_asking(policy, rule)
        now = self._appliance.now()
        body = {"rule": rule, "policy": policy.hash, "seconds": seconds, "reason": reason, "by": identity.principal.name, "created": now}
        with recorded(self._trust, self._appliance.clock, "gate.bypass", identity, body) as outcome, self._trust.transaction():
            bypass = self._trust.questions.open_bypass(rule, policy.hash, identity, reason, seconds, now)
            enqueue_bypass(self._appliance, bypass, now)
            outcome |= {"bypass": bypass.id, "expires": bypass.expires}
        return view_bypass(bypass, now)

    def end(self, identity: Identity, bypass: str) -> Document:
        """End a bypass; repeats change nothing. Raises `trust.errors.Unknown`."""
        now = self._appliance.now()
        with self._trust.transaction():
            if self._trust.questions.end_bypass(GateId(bypass), now):
                self._trust.state("gate.bypass-ended", identity, {"bypass": bypass}, now)
        return view_bypass(self._trust.questions.bypass(GateId(bypass)), now)

    def all(self, *, live: bool) -> list[Document]:
        """Return bypasses, oldest first; with `live` those that count now."""
        now = self._appliance.now()
        return [view_bypass(bypass, now) for bypass in self._trust.questions.bypasses(now if live else None)]


def require_asking(policy: CompiledPolicy, rule: str) -> None:
    """Return when a rule asks people. Raises `Kind.NOT_FOUND` for one that is not there, `Kind.INVALID` for one that does not ask."""
    asking = {guard.id for guard in policy.guards if guard.ask is not None} | {ENVELOPE}
    if policy.rule_of_two.enabled and policy.rule_of_two.ask is not None:
        asking.add(RULE_OF_TWO)
    if rule in asking:
        return
    hint = f"rules that ask: {', '.join(sorted(asking))}"
    if rule in {RULE_OF_TWO, *(guard.id for guard in policy.guards), *(grant.id for grant in policy.grants)}:
        raise Fault(Kind.INVALID, f"{rule} asks nobody: there is nothing to bypass", hint=hint)
    raise Fault(Kind.NOT_FOUND, f"{rule}: the policy has no such rule", hint=hint)
