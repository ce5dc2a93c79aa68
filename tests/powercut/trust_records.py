"""The flight recorder while power fails: several callers record intents at once, conclude them and add principals.

1. What is acknowledged: an intent with the number it got, a principal. Outcomes are durable only soon after, so none is acknowledged.
2. The check opens the state, walks the chain, and looks for every acknowledgement, content included.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from tests.powercut.machine import Acknowledge, Scenario
from trust import Trust
from trust.errors import TrustError
from trust.model import PrincipalKind

_CALLERS = 4
_TURNS = 40
_WHEN = 1_700_000_000


def _prepare(root: Path) -> None:
    trust = Trust.open(root / "trust")
    trust.add_principal("owner", PrincipalKind.HUMAN, _WHEN)
    trust.close()


def _work(root: Path, acknowledge: Acknowledge) -> None:
    trust = Trust.open(root / "trust")
    callers = [threading.Thread(target=_call, args=(trust, at, acknowledge)) for at in range(_CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    trust.close()


def _call(trust: Trust, caller: int, acknowledge: Acknowledge) -> None:
    for turn in range(_TURNS):
        sequence = trust.intend("act", None, {"caller": caller, "turn": turn}, _WHEN)
        acknowledge(f"intent {sequence} {caller} {turn}")
        if turn % 2 == 0:
            trust.conclude(sequence, {"done": turn}, _WHEN)
        if turn % 10 == 0:
            trust.add_principal(f"agent-{caller}-{turn}", PrincipalKind.AGENT, _WHEN)
            acknowledge(f"principal agent-{caller}-{turn}")


def _check(root: Path, acknowledged: Sequence[str]) -> list[str]:
    trust = Trust.open(root / "trust")
    try:
        found = trust.verify()
        if not found.ok:
            return [f"the chain is broken at {found.first_bad}: {found.why}"]
        return [wrong for line in acknowledged if (wrong := _examine(trust, *line.split())) is not None]
    except TrustError as error:
        return [f"damaged: {error}"]
    finally:
        trust.close()


def _examine(trust: Trust, what: str, subject: str, *facts: str) -> str | None:
    """Return what is wrong with one acknowledged effect, or None."""
    if what == "principal":
        return None if trust.principal(subject).name == subject else f"principal {subject} differs"
    body = trust.record(int(subject)).body
    return None if body == {"caller": int(facts[0]), "turn": int(facts[1])} else f"intent {subject} differs: {dict(body)}"


RECORDS = Scenario(_prepare, _work, _check)
