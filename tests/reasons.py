"""Looks at every decision that a test run takes: whatever is not allowed carries a reason, a rule, a place and a way on.

1. `decide` is looked at where it is defined: code that calls it takes the place of its own, so that every module that imported it is seen.
   Processes that a test starts are not looked at.
2. A decision that lacks something fails the test in which it was taken.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from trust.model import Decision, Denial, Effect

lacking: list[str] = []
"""What the decisions since the last look lacked."""
looked_at = 0
"""How many decisions were not to allow."""


def watch(decide: Any) -> None:
    """Have every call of `decide`, under whatever name, looked at. Repeats change nothing."""
    if "_decide" in decide.__globals__:
        return
    original = types.FunctionType(decide.__code__, decide.__globals__, decide.__name__)
    decide.__globals__.update(_decide=original, _look=look)
    decide.__code__ = _watched.__code__


def _watched(policy: Any, facts: Any) -> Any:
    return _look(_decide(policy, facts), facts)  # type: ignore[name-defined]  # noqa: F821  names of the module this code is put into


def look(decision: Decision, facts: Any) -> Decision:
    """Note what a decision that is not to allow lacks, and return it."""
    global looked_at
    if decision.effect is not Effect.ALLOW:
        looked_at += 1
        missing = [name for name, is_there in PARTS.items() if not is_there(decision)]
        if missing:
            lacking.append(f"{facts.action.value} by {facts.principal}: {decision} lacks {', '.join(missing)}")
    return decision


PARTS: dict[str, Callable[[Decision], bool]] = {
    "a reason": lambda decision: bool(decision.reason.strip()),
    "a rule": lambda decision: bool(decision.rule),
    "a place": lambda decision: bool(decision.position.file) and (decision.position.line > 0) == (decision.position.column > 0),
    "a way on": lambda decision: bool(decision.hint.strip()),
    "a class": lambda decision: decision.denial is not Denial.NONE,
    "who is asked": lambda decision: decision.effect is not Effect.GATE or (decision.ask is not None and bool(decision.asking)),
}


def take() -> list[str]:
    """Return and forget what was lacking."""
    found = list(lacking)
    lacking.clear()
    return found
