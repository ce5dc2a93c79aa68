"""What the suite knows of a door besides its client."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from interfaces.faults import Kind
from tests.contract.doors.leases import Standing
from tests.contract.doors.model import Client, Operation
from tests.contract.doors.site import Held, Site
from trust.model import BudgetKind


class Aspect(enum.Enum):
    """What of a cell can differ from the truth."""

    DECISION = "decision"
    RECORD = "record"
    READS = "reads"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Difference:
    """Cells in which the protocol itself makes a door differ from the port, and why; they must differ, or the suite fails."""

    aspect: Aspect
    standings: Iterable[Standing]
    operations: Iterable[Operation]
    why: str

    def covers(self, aspect: Aspect, standing: Standing, operation: Operation) -> bool:
        """Tell whether a cell is one of these."""
        return aspect is self.aspect and standing in self.standings and operation in self.operations


@dataclass(frozen=True, slots=True)
class Door:
    """One door.

    `words` has every word it says no in. `by` says through what an operation goes for which the protocol has no word of its own. `holds`
    tells that the door keeps a workspace open instead of letting its caller in anew with each request. `more` is what going through other
    operations costs above what the port charges, under the lease that allows everything; None where what travels is charged, which is
    other bytes. `speaks_prose` tells that the protocol has sentences for people instead of words for kinds.
    """

    name: str
    connect: Callable[[Site, Held], Client]
    words: Mapping[str, frozenset[Kind]]
    by: Mapping[Operation, str] = field(default_factory=dict)
    differs: tuple[Difference, ...] = ()
    more: Mapping[BudgetKind, int] | None = field(default_factory=dict)
    holds: bool = False
    speaks_prose: bool = False

    def difference(self, aspect: Aspect, standing: Standing, operation: Operation) -> Difference | None:
        """Return why a cell differs, None when it must not."""
        return next((each for each in self.differs if each.covers(aspect, standing, operation)), None)


def one_kind_each(words: Mapping[str, Kind]) -> dict[str, frozenset[Kind]]:
    """Return the table of a protocol that has a word for every kind."""
    return {word: frozenset({kind}) for word, kind in words.items()}
