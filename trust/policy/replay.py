"""Recorded decisions taken again: by the policy of that day, which must say the same, and by a proposed one, which may not.

1. A decision is taken again only from complete facts; others are counted as such, never guessed.
2. Under a proposed policy whoever acted has the roles that it gives, and what was read and written the labels that it puts on those paths.
   Labels only rise here: what the policy of the day put on something, and the proposed one would not, stays, since a run had read it.
3. What was approved by people is compared by what would be asked, not by the approval.
4. Pure; one pass, memory for the examples only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trust.errors import FactsIncomplete
from trust.facts import describe_decision, hash_facts, read_facts
from trust.labels import Label, join_all
from trust.model import Action, Ask, Decision, Effect, Facts
from trust.policy.decide import decide
from trust.policy.rules import CompiledPolicy

MOST_EXAMPLES = 100
"""How many cases of a kind are told; all are counted."""

Archive = Callable[[str], CompiledPolicy | None]
"""Returns the policy with a hash, None where it is not known."""
Standing = Callable[[str], frozenset[str]]
"""Returns the roles that a principal has whatever the policy says."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a record keeps of a decision (`trust.facts.judged`), and where it stands."""

    sequence: int
    kind: str
    judged: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A recorded decision that could not be taken again, or that came out otherwise, and why."""

    sequence: int
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A recorded decision that the proposed policy would take otherwise."""

    sequence: int
    kind: str
    facts: Facts
    before: Decision
    after: Decision


@dataclass(slots=True)
class Replay:
    """What came of taking decisions again. The lists hold the first `MOST_EXAMPLES`, the counts everything."""

    decisions: int = 0
    confirmed: int = 0
    incomplete: int = 0
    contradicted: int = 0
    unknown_policy: int = 0
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many went from one effect to another."""
    troubles: list[Trouble] = field(default_factory=list)
    examples: list[Moved] = field(default_factory=list)


def replay(records: Iterable[Recorded], archive: Archive, proposed: CompiledPolicy | None, standing: Standing) -> Replay:
    """Take every decision again, and by `proposed` as well where there is one."""
    result = Replay()
    for recorded in records:
        result.decisions += 1
        try:
            facts = read_facts(recorded.judged["facts"])
        except (FactsIncomplete, KeyError, TypeError) as error:
            result.incomplete += 1
            _trouble(result, recorded, f"incomplete facts: {error}")
            continue
        policy = archive(str(recorded.judged.get("policy", "")))
        if policy is None:
            result.unknown_policy += 1
            _trouble(result, recorded, f"the policy {recorded.judged.get('policy')} is not archived")
            continue
        contradiction = _contradiction(recorded, policy, facts)
        if contradiction:
            result.contradicted += 1
            _trouble(result, recorded, contradiction)
            continue
        result.confirmed += 1
        if proposed is not None:
            _compare(result, recorded, facts, policy, proposed, standing)
    return result


def _trouble(result: Replay, recorded: Recorded, why: str) -> None:
    if len(result.troubles) < MOST_EXAMPLES:
        result.troubles.append(Trouble(recorded.sequence, recorded.kind, why))


def _contradiction(recorded: Recorded, policy: CompiledPolicy, facts: Facts) -> str:
    """Return what does not come out as it was recorded, empty when everything does."""
    if hash_facts(facts) != recorded.judged.get("hash"):
        return "the facts are not those of the recorded hash"
    again = describe_decision(decide(policy, facts))
    said = recorded.judged.get("decision")
    return "" if again == said else f"recorded {_brief(said)}, and the same policy and facts give {_brief(again)}"


def _brief(decision: Any) -> str:
    return f"{decision.get('effect')} by {decision.get('rule')}" if isinstance(decision, Mapping) else "nothing"


def _compare(
    result: Replay, recorded: Recorded, facts: Facts, policy: CompiledPolicy, proposed: CompiledPolicy, standing: Standing
) -> None:
    asked = replace(facts, gate=None)
    before = decide(policy, asked)
    after = decide(proposed, refit(asked, policy, proposed, standing))
    if _essence(before) == _essence(after):
        return
    result.moved[before.effect.value, after.effect.value] += 1
    if len(result.examples) < MOST_EXAMPLES:
        result.examples.append(Moved(recorded.sequence, recorded.kind, facts, before, after))


def _essence(decision: Decision) -> tuple[Effect, Ask | None]:
    return decision.effect, decision.ask


def refit(facts: Facts, before: CompiledPolicy, after: CompiledPolicy, standing: Standing) -> Facts:
    """Return the facts as they would have been gathered under another policy."""
    name = facts.on_behalf_of if facts.action is Action.START else facts.principal  # a run is asked for by whom it is for
    had, has = before.roles_of(name), after.roles_of(name)
    roles = (facts.roles - (had - has - standing(name))) | (has - had)
    return replace(facts, roles=roles, label=join_all(_labels(facts, before, after), facts.label))


def _labels(facts: Facts, before: CompiledPolicy, after: CompiledPolicy) -> Iterable[Label]:
    """Yield the labels that the other policy puts on what the act is about, where it says something else of it."""
    paths = facts.change.paths if facts.change is not None else () if facts.path is None else (facts.path,)
    for path in paths:
        label = after.label_of(path)
        if label != before.label_of(path):
            yield label
