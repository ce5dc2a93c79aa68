"""Labels: how far the origin of some bytes is trusted and how far they may go, and the join that follows them everywhere.

1. `join` takes the less trusted origin and the higher sensitivity. It is commutative, associative and idempotent; `CLEAN` changes nothing.
2. What nobody labelled is `DEFAULT`: made here, meant for here. Reading it taints nobody.
3. A run's taint is the join of what it read; it only rises. What the run writes carries its taint: nobody can tell which of the bytes it
   read went into those it wrote.
4. The Rule of Two (Meta, "Agents Rule of Two", October 2025): of untrusted input, sensitive data, and an effect outside of the own branch
   a run may combine two without a person.
5. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Origin(enum.IntEnum):
    """Where bytes come from; a larger number is trusted less."""

    OWNER = 0
    INTERNAL = 1
    EXTERNAL = 2


class Sensitivity(enum.IntEnum):
    """How far bytes may go; a larger number less far."""

    PUBLIC = 0
    INTERNAL = 1
    SENSITIVE = 2


@dataclass(frozen=True, slots=True)
class Label:
    """A mark on data. As a ceiling it is the most that is allowed, as a taint what was read."""

    origin: Origin
    sensitivity: Sensitivity

    @property
    def untrusted(self) -> bool:
        """Tell whether it may say what nobody here meant."""
        return self.origin is Origin.EXTERNAL

    @property
    def secret(self) -> bool:
        """Tell whether it must not leave without a person."""
        return self.sensitivity is Sensitivity.SENSITIVE

    def within(self, ceiling: Label) -> bool:
        """Tell whether this is no less trusted and no more sensitive than a ceiling."""
        return self.origin <= ceiling.origin and self.sensitivity <= ceiling.sensitivity

    def __str__(self) -> str:
        """Return the two words, ``external/sensitive``."""
        return f"{self.origin.name.lower()}/{self.sensitivity.name.lower()}"


CLEAN = Label(Origin.OWNER, Sensitivity.PUBLIC)
"""The label that a join does not notice."""
DEFAULT = Label(Origin.INTERNAL, Sensitivity.INTERNAL)
"""The label of what nobody labelled, and the taint of a run that read only such."""
WORST = Label(Origin.EXTERNAL, Sensitivity.SENSITIVE)
"""The label above which there is none."""


def join(one: Label, other: Label) -> Label:
    """Return the label of what was made from both."""
    if one is other:
        return one
    return Label(max(one.origin, other.origin), max(one.sensitivity, other.sensitivity))


def join_all(labels: Iterable[Label], start: Label = CLEAN) -> Label:
    """Return the label of what was made from all of them and `start`."""
    for label in labels:
        start = join(start, label)
    return start


def parse_label(origin: str | None, sensitivity: str | None, otherwise: Label = DEFAULT) -> Label:
    """Return the label of two words; None takes the part of `otherwise`. Raises `ValueError` for a word that is none."""
    try:
        return Label(
            otherwise.origin if origin is None else Origin[origin.upper()],
            otherwise.sensitivity if sensitivity is None else Sensitivity[sensitivity.upper()],
        )
    except KeyError as error:
        raise ValueError(f"{error.args[0].lower()!r} is no label") from error


def breaks_rule_of_two(label: Label, outward: bool) -> bool:
    """Tell whether all three come together: untrusted input, sensitive data (both in `label`), and an effect outside of the branch."""
    return label.untrusted and label.secret and outward
