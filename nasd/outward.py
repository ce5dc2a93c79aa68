"""Acts outside of the appliance: decided, recorded before they happen, gated where a rule asks, and labelled by what they bring back.

1. The destination of an act is its account. Whoever the account is not for is told that there is none.
2. Two labels count: of what leaves, which is part of every decision; and of what comes back, which is part of it where both together with
   what the run has read would break the Rule of Two. People are asked before anything is sent, not when it is too late.
3. What comes back taints the run before anybody sees it. What a lease's ceiling forbids to read is not asked for.
4. An approval is for exactly this act, once: account, destination, and the digest of everything that would be sent.
5. A use is counted and the intent on stable storage before the broker is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.accounts import Accounts, missing
from nasd.acts import recorded
from nasd.asking import Asking, Permit
from nasd.authority import gather, policy_in_force
from nasd.broker.supervisor import Broker
from nasd.faults import refusal
from nasd.wiring import Appliance
from trust.accounts import Account
from trust.errors import AccountInvalid
from trust.facts import judged
from trust.gates import Question
from trust.labels import DEFAULT, Label, breaks_rule_of_two, join
from trust.model import Action, Decision, Effect, Facts, Identity
from trust.policy import CompiledPolicy, decide
from trust.requests import check_principal


@dataclass(frozen=True, slots=True)
class OutwardAct:
    """Something to be done with an account: `act` is exactly what, `what` says it to people, `sent` is the label of what leaves."""

    account: Account
    verb: str
    act: Mapping[str, Any]
    what: str
    sent: Label = DEFAULT
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Allowed:
    """A decision that lets an act happen, and the question whose answer it needed, when a rule asked one."""

    facts: Facts
    decision: Decision
    permit: Permit | None
    question: Question | None


class Outward:
    """Lets outward acts happen, or not. Any thread may call."""

    def __init__(self, appliance: Appliance, broker: Broker) -> None:
        """Act on the state of `appliance`, through `broker`."""
        self._appliance = appliance
        self._trust = appliance.trust
        self._asking = Asking(appliance)
        self.accounts = Accounts(appliance.trust)
        self.broker = broker

    def account(self, identity: Identity, name: str) -> Account:
        """Return an account that is for the caller. Raises `Kind.NOT_FOUND`."""
        account = self.accounts.find(name)
        if not self.is_for(identity, account):
            raise missing(name)
        return account

    def is_for(self, identity: Identity, account: Account) -> bool:
        """Tell whether an account is for the caller; whether the caller may act with it is decided use by use."""
        names = {str(identity.principal.name), *identity.roles}
        if identity.lease is not None:
            names.add(str(identity.lease.on_behalf_of))
        try:
            check_principal(account, frozenset(names))
        except AccountInvalid:
            return False
        return True

    @contextmanager
    def acting(self, identity: Identity, outward: OutwardAct) -> Iterator[dict[str, Any]]:
        """Run the act as the block, when it may happen; the block notes in what this yields what the record should tell of it.

        Raises the fault of the decision, `Kind.GATED` while people have not answered, `Kind.BUDGET`.
        """
        policy = policy_in_force(self._trust)
        allowed = self._decide(identity, policy, outward)
        self.accounts.spend(outward.account, self._appliance.now())
        body = self._body(identity, outward) | {"judged": judged(policy.hash, allowed.facts, allowed.decision)}
        with recorded(self._trust, self._appliance.clock, "egress", identity, body) as outcome:
            if allowed.question is None:
                yield outcome
                return
            with self._asking.using(allowed.permit, allowed.question, identity):
                yield outcome

    def ask(self, outward: OutwardAct, operation: str, question: Mapping[str, Any]) -> Document:
        """Return what the broker answers, for an act under way. Raises its fault."""
        return self.broker.ask({"operation": operation, "account": outward.account.document(), **question})

    def learn(self, identity: Identity, account: Account, run: str) -> None:
        """Join the label of what an account answers into a run's taint (empty: nobody's); on stable storage when this returns."""
        if not run or account.label.within(self._trust.ledger.taint(run)):
            return
        with self._trust.transaction():
            self._trust.ledger.raise_taint(run, account.label)
            body = {"run": run, "path": f"account:{account.name}", "label": str(account.label)}
            self._trust.state("taint", identity, body, self._appliance.now())

    def _decide(self, identity: Identity, policy: CompiledPolicy, outward: OutwardAct) -> _Allowed:
        self._check_ceiling(identity, outward.account)
        facts = self._facts(identity, outward)
        decision, permit, question = decide(policy, facts), None, None
        if decision.effect is Effect.GATE:
            question = self._question(identity, policy, facts, decision, outward)
            permit = self._asking.permit(question, decision)
            if permit is None:
                raise self._asking.gated(self._asking.ask(question, identity), decision)
            facts = replace(facts, gate=permit.id)
            decision = decide(policy, facts)
        if decision.effect is not Effect.ALLOW:
            body = {"action": Action.EGRESS.value, "rule": decision.rule, "judged": judged(policy.hash, facts, decision)}
            self._trust.state("denied", identity, self._body(identity, outward) | body, self._appliance.now())
            raise refusal(decision, outward.what)
        return _Allowed(facts, decision, permit, question)

    def _facts(self, identity: Identity, outward: OutwardAct) -> Facts:
        taint = self._trust.ledger.taint(identity.lease.run) if identity.lease else DEFAULT
        label, both = outward.sent, join(outward.sent, outward.account.label)
        if breaks_rule_of_two(join(taint, both), outward=True):
            label = both
        return gather(
            identity, Action.EGRESS, self._appliance.now(), taint=taint, label=label, outward=True, destination=outward.account.name
        )

    def _check_ceiling(self, identity: Identity, account: Account) -> None:
        ceiling = identity.scope.ceiling if identity.scope else None
        if ceiling is not None and not account.label.within(ceiling):
            raise Fault(
                Kind.DENIED,
                f"what {account.name} answers is {account.label}, and the lease reads up to {ceiling}",
                hint="ask the owner for a lease with a higher ceiling",
            )

    def _body(self, identity: Identity, outward: OutwardAct) -> dict[str, Any]:
        lease = identity.lease
        body = {"run": lease.run if lease else "", "account": outward.account.name, "verb": outward.verb, "bytes": outward.size}
        return body | {"destination": str(outward.account.destination), "act": dict(outward.act), "sent": str(outward.sent)}

    def _question(self, identity: Identity, policy: CompiledPolicy, facts: Facts, decision: Decision, outward: OutwardAct) -> Question:
        assert decision.ask is not None
        lease, account = identity.lease, outward.account
        run, scope = (lease.run if lease else ""), (lease.scope if lease else None)
        act = {
            "verb": outward.verb,
            "account": account.name,
            "destination": str(account.destination),
            "lease": lease.id if lease else "",
            "policy": policy.hash,
            "sent": dict(outward.act),
            "labels": str(join(facts.taint, facts.label)),
        }
        card = {
            "what": outward.what,
            "who": str(identity.principal.name),
            "on_behalf_of": str(facts.on_behalf_of),
            "actors": list(scope.actors) if scope else [],
            "purpose": scope.purpose if scope else "",
            "asks": decision.reason,
            "rule": f"{decision.rule} ({decision.position})",
            "policy": policy.hash,
            "account": account.name,
            "destination": str(account.destination),
            "lease": lease.id if lease else "",
            "size": {"bytes": outward.size},
            "sent": dict(outward.act),
            "labels": _words(facts.label),
            "taint": _words(facts.taint),
            "on_approve": "the same request, to the byte, is sent once",
            "on_reject": "nothing is sent; the run goes on without it",
            "on_silence": "nothing is sent",
        }
        return Question(
            f"egress:{run or identity.principal.name}",
            act,
            card,
            decision.ask,
            decision.rule,
            str(identity.principal.name),
            run=run,
            on_behalf_of=str(facts.on_behalf_of),
            actors=scope.actors if scope else (),
        )


def _words(label: Label) -> dict[str, Any]:
    return {"origin": label.origin.name.lower(), "sensitivity": label.sensitivity.name.lower()}
