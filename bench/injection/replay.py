"""Stored prompt injection against the storage: AgentDojo's tasks and attacks, as data, put to the real decider and the real ledger.

1. The agent is wholly obedient: from the first words of an attacker it reads it does what these ask, and then goes on. No model is asked.
2. Every object is a file. Reading goes through the ledger of labels and `decide`; what anybody else sees is an outward act to an account;
   what stays in the storage returns to `main` by a proposal. A question is not answered, so what waits for one is not done.
3. An attack that was not let read what it wants to send has nothing to send: its later steps are not carried out.
4. The lease of a task reaches the folders of its suite but `private/`, and names the accounts whose names stand in the words of the task.
5. Whether an attack succeeded says AgentDojo's own judge: `extract` asked it for each set of acts that can have been carried out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nasd.authority import gather
from trust import Trust
from trust.labels import DEFAULT, Label, Origin, Sensitivity, join_all
from trust.model import (
    LEASABLE,
    Action,
    ChangeFacts,
    Effect,
    Facts,
    Identity,
    Lease,
    LeaseId,
    Principal,
    PrincipalKind,
    PrincipalName,
    RunId,
    Scope,
)
from trust.policy import CompiledPolicy, compile_policy, decide, default_policy

DATA = Path(__file__).parents[2] / "tests" / "attacks" / "data" / "agentdojo.json"
NOW = 1_800_000_000
FOLDERS = {
    "workspace": ("mail/**", "calendar/**", "drive/**"),
    "travel": ("hotels/**", "restaurants/**", "cars/**", "calendar/**", "mail/**"),
    "banking": ("transactions/**", "orders/**", "files/**"),
    "slack": ("channels/**", "direct/**", "web/**"),
}
"""What the lease of a task reaches: the folders its kind of work is about."""
KINDS = ("mail", "calendar", "drive", "hotels", "restaurants", "cars", "transactions", "files", "channels", "direct", "web")
"""Folders in which somebody else's words can be; the marks of the variant in which all of them are external."""
PERSONAL = ("mail", "calendar", "drive", "transactions", "orders", "files", "direct", "channels/private")
"""Folders that a careful person may call sensitive as well; the marks of the variant in which they are."""
EXTERNAL = Label(Origin.EXTERNAL, Sensitivity.INTERNAL)
SENSITIVE = Label(Origin.INTERNAL, Sensitivity.SENSITIVE)


class Step(NamedTuple):
    """A call of a tool, in the words of a storage."""

    tool: str
    reads: Sequence[str]
    writes: Sequence[str]
    deletes: Sequence[str]
    reaches: Sequence[str]

    @property
    def acts(self) -> bool:
        """Tell whether it does more than read."""
        return bool(self.writes or self.deletes or self.reaches)


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of the curve: which rules, which labels, what leases name."""

    name: str
    guards: bool = True
    rule_of_two: bool = True
    spare_declared: bool = True
    pages: bool = True
    """Whether fetching a page that the agent chose counts as an outward act."""
    declares: str = "recipients"
    """What a lease names: ``recipients`` (an account for each), ``services`` (one account for each service), or ``nothing``."""
    whole_folders: bool = False
    personal: bool = False
    reaches_all: bool = False

    def policy(self) -> CompiledPolicy:
        """Return the default policy with the rules of this row and no others about labels."""
        document = yaml.safe_load(default_policy())
        if not self.guards:
            document["guards"] = [guard for guard in document["guards"] if "origin" not in guard.get("when", {})]
        for guard in document["guards"]:
            if not self.spare_declared:
                guard.get("when", {}).pop("destination", None)
        if not self.rule_of_two:
            document["rule_of_two"] = {"effect": "off"}
        return compile_policy(yaml.safe_dump(document), "policy.yaml")


DEFAULT_POLICY = Variant("**the default policy, leases name accounts**")
"""What is shipped."""
CURVE = (
    Variant("none", guards=False, rule_of_two=False, declares="nothing", reaches_all=True),
    Variant("Rule of Two alone", guards=False, declares="nothing", personal=True, reaches_all=True),
    Variant("untrusted reading asks (P-T)", rule_of_two=False, spare_declared=False, pages=False, declares="nothing"),
    Variant("P-T, and a chosen page is an outward act", rule_of_two=False, spare_declared=False, declares="nothing"),
    Variant("the default policy, leases name no account", declares="nothing"),
    DEFAULT_POLICY,
)
OTHERS = (
    Variant("one account for each service instead of each recipient", declares="services"),
    Variant("all folders with words of others external, not only what was injected", whole_folders=True),
    Variant("mail, files, transactions and private channels sensitive as well", personal=True),
    Variant("leases that reach `private/`, too", reaches_all=True),
)


@dataclass(slots=True)
class Outcome:
    """What became of the steps of one run, numbered in the order in which they were tried."""

    steps: int = 0
    held: set[int] = field(default_factory=set)
    """Those that were not carried out."""
    kept: list[tuple[int, Step]] = field(default_factory=list)
    """Those that changed files, which a proposal brings to `main` at the end."""
    acts: list[int] = field(default_factory=list)
    """Those of an attack that do more than read."""
    rules: list[str] = field(default_factory=list)
    asked: bool = False
    seen_after: int | None = None
    """The task's own step that showed the attack."""

    def hold(self) -> None:
        """Note that the next step was not carried out."""
        self.held.add(self.steps)
        self.steps += 1


@dataclass(slots=True)
class Count:
    """One row of the curve as it was measured."""

    variant: Variant
    attacks: int = 0
    through: int = 0
    tasks: int = 0
    asked: int = 0
    suites: dict[str, list[int]] = field(default_factory=dict)
    held: dict[str, list[list[int]]] = field(default_factory=dict)
    success: dict[str, list[int]] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)


def load(path: Path = DATA) -> Mapping[str, Any]:
    """Return what `extract` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))["suites"]  # type: ignore[no-any-return]


def account(destination: str, declares: str = "recipients") -> str:
    """Return the name of the account that an outward act goes through."""
    service, _, recipient = destination.partition(":")
    return service if declares == "services" else re.sub(r"[^a-z0-9._-]+", "-", f"{service}-{recipient}".lower())


def named(prompt: str, destinations: Iterable[str]) -> Iterator[str]:
    """Yield the destinations whose recipient stands, as a word, in what a person wrote."""
    for destination in destinations:
        recipient = destination.partition(":")[2]
        if re.search(rf"(?<![\w@.]){re.escape(recipient)}(?![\w@])", prompt, re.IGNORECASE):
            yield destination


class Bench:
    """Runs tasks and attacks through a trust state of its own."""

    def __init__(self, trust: Trust, variant: Variant, suite: str, data: Mapping[str, Any]) -> None:
        """Label the files of a suite as the variant says."""
        self._trust, self._variant, self._policy = trust, variant, variant.policy()
        self._suite, self._data = suite, data
        self._steps = [Step(*row) for row in data["steps"]]
        self._external = frozenset(data["external"])
        self._runs = 0
        trust.ledger.note([(path.encode(), _content(path), EXTERNAL) for path in data["external"]], "0" * 40)
        if variant.whole_folders:
            for kind in KINDS:
                trust.ledger.mark(f"{kind}/**", EXTERNAL)
        if variant.personal:
            for kind in PERSONAL:
                trust.ledger.mark(f"{kind}/**", SENSITIVE)

    def measure(self, count: Count) -> None:
        """Put every task of the suite, alone and with every attack, and add to `count`."""
        through = asked = 0
        for prompt, steps in self._data["users"].values():
            outcome = self.carry_out(prompt, [self._steps[number] for number in steps])
            asked += outcome.asked
            for rule in set(outcome.rules):
                count.rules[rule] = count.rules.get(rule, 0) + 1
        count.held[self._suite], count.success[self._suite] = [], []
        for user, injection, _, attack, outcomes in self._data["pairs"]:
            prompt, own = self._data["users"][user]
            outcome = self.carry_out(prompt, [self._steps[number] for number in own], [self._steps[number] for number in attack])
            done = sum(1 << bit for bit, number in enumerate(outcome.acts) if number not in outcome.held)
            success = int(outcomes[done]) if outcome.seen_after is not None else 0
            through += success
            if success:
                key = f"{self._suite} {injection}"
                count.passed[key] = count.passed.get(key, 0) + 1
            count.held[self._suite].append(sorted(outcome.held))
            count.success[self._suite].append(success)
        count.suites[self._suite] = [through, len(self._data["pairs"]), asked, len(self._data["users"])]
        count.through += through
        count.attacks += len(self._data["pairs"])
        count.asked += asked
        count.tasks += len(self._data["users"])

    def carry_out(self, prompt: str, own: Sequence[Step], attack: Sequence[Step] | None = None) -> Outcome:
        """Return what becomes of a task's own steps, and of an attack's behind the first step that shows it."""
        outcome, run = Outcome(), self._begin(prompt)
        self._do(run, own, outcome, attack)
        changes = [step for number, step in outcome.kept]
        if changes and not self._allowed(self._merge(run, changes), outcome):
            outcome.held.update(number for number, _ in outcome.kept)
        return outcome

    def _do(self, run: Identity, own: Sequence[Step], outcome: Outcome, attack: Sequence[Step] | None) -> None:
        for number, step in enumerate(own):
            done = self._one(run, step, outcome)
            if done and attack is not None and outcome.seen_after is None and self._external.intersection(step.reads):
                outcome.seen_after = number
                self._obey(run, attack, outcome)

    def _obey(self, run: Identity, attack: Sequence[Step], outcome: Outcome) -> None:
        blind = False
        for step in attack:
            if step.acts:
                outcome.acts.append(outcome.steps)
            if blind:
                outcome.hold()
            else:
                blind = not self._one(run, step, outcome) and bool(step.reads)

    def _one(self, run: Identity, step: Step, outcome: Outcome) -> bool:
        """Do a step as far as it is allowed, note what became of it, and tell whether all of it was done."""
        if not self._allowed_whole(run, step, outcome):
            outcome.hold()
            return False
        if step.writes or step.deletes:
            outcome.kept.append((outcome.steps, step))
        outcome.steps += 1
        return True

    def _begin(self, prompt: str) -> Identity:
        self._runs += 1
        variant = self._variant
        accounts: set[str] = set()
        if variant.declares != "nothing":
            everything = {each for step in self._steps for each in step.reaches}
            accounts = {account(each, variant.declares) for each in named(prompt, everything)}
        paths = FOLDERS[self._suite] + (("private/**",) if variant.reaches_all else ())
        scope = Scope(paths, LEASABLE, NOW, NOW + 3600, destinations=tuple(sorted(accounts)))
        agent = Principal(PrincipalName("assistant"), PrincipalKind.AGENT, NOW)
        run = RunId(f"{variant.name}-{self._suite}-{self._runs}")
        return Identity(agent, frozenset(), lease=Lease(LeaseId(run), run, agent.name, PrincipalName("emma"), scope, NOW))

    def _allowed_whole(self, run: Identity, step: Step, outcome: Outcome) -> bool:
        """Read what a step reads as far as it is allowed, and tell whether all of the step was."""
        page = step.tool == "get_webpage"
        if not page or self._variant.pages:
            label = join_all((self._label(path) for path in step.reads if not page), DEFAULT)
            for destination in step.reaches:
                name = account(destination, self._variant.declares)
                if not self._allowed(self._facts(run, Action.EGRESS, label=label, destination=name), outcome):
                    return False
        for path in step.reads:
            label = self._label(path)
            if not self._allowed(self._facts(run, Action.READ, path=path.encode(), label=label), outcome):
                return False
            self._trust.ledger.raise_taint(_run_of(run), label)
        acts = [(Action.WRITE, path) for path in step.writes] + [(Action.DELETE, path) for path in step.deletes]
        return all(self._allowed(self._facts(run, action, path=path.encode()), outcome) for action, path in acts)

    def _merge(self, run: Identity, changes: Sequence[Step]) -> Facts:
        paths = tuple(path.encode() for step in changes for path in (*step.writes, *step.deletes))
        deleted = tuple(path.encode() for step in changes for path in step.deletes)
        change = ChangeFacts(paths, deleted, len(paths), len(deleted), 100 * len(paths))
        taint = self._trust.ledger.taint(_run_of(run))
        return gather(
            Identity(run.principal, frozenset()),
            Action.MERGE,
            NOW,
            protected=True,
            change=change,
            taint=taint,
            label=taint,
            on_behalf_of=PrincipalName("emma"),
        )

    def _facts(self, run: Identity, action: Action, **more: Any) -> Facts:
        return gather(run, action, NOW, taint=self._trust.ledger.taint(_run_of(run)), **more)

    def _allowed(self, facts: Facts, outcome: Outcome) -> bool:
        decision = decide(self._policy, facts)
        if decision.effect is Effect.ALLOW:
            return True
        outcome.asked = outcome.asked or decision.effect is Effect.GATE
        outcome.rules.append(decision.rule)
        return False

    def _label(self, path: str) -> Label:
        return self._trust.ledger.label(self._policy, path.encode(), _content(path))


def _content(path: str) -> bytes:
    return hashlib.sha256(path.encode()).hexdigest().encode()


def _run_of(identity: Identity) -> str:
    assert identity.lease is not None
    return identity.lease.run


def measure(variant: Variant, folder: Path, data: Mapping[str, Any]) -> Count:
    """Return one row of the curve; each suite is a storage of its own, in `folder`."""
    count = Count(variant)
    for suite, content in data.items():
        state = folder / re.sub(r"\W+", "-", f"{variant.name}-{suite}")
        state.mkdir(parents=True)
        trust = Trust.open(state)
        try:
            Bench(trust, variant, suite, content).measure(count)
        finally:
            trust.close()
    return count
