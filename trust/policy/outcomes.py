"""What a policy says of a cell, from the rules that apply to it.

1. Says the same as `decide` for every facts that a cell stands for; a test holds it to that.
2. Unlike a `Decision` it tells a refusal from the lack of a grant, since they differ when a change has several paths.
3. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from trust.model import LEASABLE, Action, Ask
from trust.policy.abstraction import Space
from trust.policy.decide import ENVELOPE_ASK, combine_asks
from trust.policy.rules import CompiledPolicy, Grant


class Verdict(enum.IntEnum):
    """What happens, the stricter the larger; of several paths of a change the strictest counts."""

    ALLOWED = 0
    UNGRANTED = 1
    ASKED = 2
    REFUSED = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict, and for `ASKED` what is asked."""

    verdict: Verdict
    ask: Ask | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the cells of a space for one of the policies it was made from."""

    refusing: int
    granting: int
    asking: tuple[tuple[int, Ask], ...]
    refuses_three: int
    needs_grant: bool
    enough: int
    """The bits that are as good as a grant."""

    def read(self, applying: int) -> Outcome:
        """Return what the policy says where these bits are set."""
        if applying & (self.refusing | self.refuses_three):
            return _REFUSED
        asks = [ask for bit, ask in self.asking if applying & bit]
        granted = applying & (self.granting | self.enough)
        if asks and (granted or not self.needs_grant):
            return Outcome(Verdict.ASKED, combine_asks(asks))
        return _ALLOWED if granted else _UNGRANTED


_REFUSED, _ALLOWED, _UNGRANTED = Outcome(Verdict.REFUSED), Outcome(Verdict.ALLOWED), Outcome(Verdict.UNGRANTED)


def make_reader(policy: CompiledPolicy, space: Space) -> Reader:
    """Return what reads a space's cells for a policy."""
    refusing = granting = 0
    asking: list[tuple[int, Ask]] = []
    mine = {id(rule) for rule in _all(policy)}
    for index, column in enumerate(space.columns):
        rule, bit = column.rule, 1 << index
        if id(rule) not in mine or column.lives:
            continue
        if isinstance(rule, Grant):
            granting |= bit
        elif rule.ask is None:
            refusing |= bit
        else:
            asking.append((bit, rule.ask))
    three = policy.rule_of_two
    if three.enabled and three.ask is not None:
        asking.append((space.broken, three.ask))
    if space.action is Action.MERGE:
        asking.append((space.steering, ENVELOPE_ASK))
    return Reader(
        refusing,
        granting,
        tuple(asking),
        space.broken if three.enabled and three.ask is None else 0,
        space.action in LEASABLE or space.action is Action.START,
        space.owning if space.action is Action.START else 0,
    )


def _all(policy: CompiledPolicy) -> Iterable[object]:
    return (*policy.grants, *policy.guards)


def living_grants(policy: CompiledPolicy, space: Space, applying: int) -> tuple[Grant, ...]:
    """Return the grants that a lease requested in a cell would live on."""
    mine = {id(rule) for rule in policy.grants}
    return tuple(
        column.rule
        for index, column in enumerate(space.columns)
        if column.lives and isinstance(column.rule, Grant) and id(column.rule) in mine and applying >> index & 1
    )
