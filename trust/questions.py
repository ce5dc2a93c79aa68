"""Questions for people, kept: asked once, answered once, used once, whoever tries in whatever process at the same time.

1. Each step reads the gate inside a transaction, lets `trust.gates` judge it and replaces it: nobody can come in between. Everything is
   durable when it returns, and every step that may change a decision moves the epoch.
2. The same question of the same run is asked once: a repeat finds the gate that waits or whose approval still counts, and what was refused
   a short while ago stays refused. A run has only so many questions waiting.
3. Nothing here records by itself, and nothing carries out what was decided.
4. Any thread, several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trust.contract import Engine
from trust.errors import AlreadyRefused, GateClosed, TooManyQuestions
from trust.gates import (
    MOST_PENDING,
    REASK_SECONDS,
    Question,
    acknowledge,
    act_digest,
    answer,
    close,
    covering,
    describe_end,
    expire,
    make_bypass,
    make_gate,
    releases,
    supersede,
    withdraw,
)
from trust.model import Bypass, Digest, Gate, GateId, GateState, Identity


class Questions:
    """Everything about gates and bypasses that needs the engine."""

    def __init__(self, engine: Engine, make_id: Callable[[str], str]) -> None:
        """Keep them in `engine`; `make_id` gives an id that starts with a letter."""
        self._engine = engine
        self._make_id = make_id

    # -- asking -------------------------------------------------------------------------------------------------------

    def ask(self, question: Question, excluded: Iterable[str], now: int) -> tuple[Gate, bool]:
        """Return the gate of a question and whether this call opened it; `excluded` may not answer it.

        Raises `ScopeInvalid`, `AlreadyRefused`, `TooManyQuestions`.
        """
        gate = make_gate(GateId(self._make_id("g")), question, excluded, now)
        with self._engine.transaction():
            known = self.known(question, now)
            if known is not None:
                return known, False
            if gate.run and len(self._engine.gates.all(GateState.PENDING, run=gate.run)) >= MOST_PENDING:
                raise TooManyQuestions(gate.run, f"{MOST_PENDING} questions of this run wait for an answer already")
            self._engine.gates.add(gate)
        return gate, True

    def known(self, question: Question, now: int) -> Gate | None:
        """Return the gate that a question finds waiting, or approved and not used up; None when it would be asked.

        Raises `AlreadyRefused` when somebody said no to it a short while ago.
        """
        for known in reversed(self._engine.gates.asking(act_digest(question.subject, question.act))):
            if (known.run, known.rule) != (question.run, question.rule):
                continue
            if releases(known, now) or (known.state is GateState.PENDING and now < known.deadline):
                return known
            if known.state is GateState.REJECTED and known.answered is not None and now < known.answered + REASK_SECONDS:
                raise AlreadyRefused(known.id, f"{known.answered_by} said no to exactly this{_because(known)}")
        return None

    def approved(self, subject: str, act: Mapping[str, Any], run: str, now: int) -> Gate | None:
        """Return a gate whose approval counts for exactly this act of this run, None when there is none."""
        found = self._engine.gates.asking(act_digest(subject, act))
        return next((gate for gate in reversed(found) if gate.run == run and releases(gate, now)), None)

    # -- deciding -----------------------------------------------------------------------------------------------------

    def answer(self, gate: GateId, digest: Digest, approve: bool, by: Identity, comment: str, now: int) -> Gate:
        """Answer a gate. Raises `Unknown`, `NotEntitled`, `GateMismatch`, `AlreadyAnswered`, `GateClosed`."""
        return self._step(gate, lambda asked: answer(asked, digest, approve, by, comment, now), now)

    def withdraw(self, gate: GateId, why: str, now: int) -> Gate:
        """Take a question back, answered or not, as long as its act has not begun. Raises `Unknown`, `GateClosed`."""
        return self._step(gate, lambda asked: withdraw(asked, why, now), now)

    def supersede(self, gate: GateId, successor: str, now: int) -> Gate:
        """End a question whose act is not what would happen any more. Raises `Unknown`, `GateClosed`."""
        return self._step(gate, lambda asked: supersede(asked, successor, now), now)

    def expire(self, now: int) -> list[Gate]:
        """End what nobody answered, or used, in time, and return what this call ended, in one process only."""
        ended: list[Gate] = []
        with self._engine.transaction():
            for gate in self._engine.gates.due(now):
                after = expire(gate, now)
                if after is not None and self._engine.gates.replace(gate, after):
                    ended.append(after)
            self._engine.bump()
        return ended

    def due(self, now: int) -> bool:
        """Tell whether anything is there for `expire`."""
        return bool(self._engine.gates.due(now))

    # -- carrying out -------------------------------------------------------------------------------------------------

    def acknowledge(self, gate: GateId, act: Digest, now: int) -> Gate:
        """Begin the act of an approved gate, which spends it. Raises `Unknown`, `GateMismatch`, `GateClosed`."""
        return self._step(gate, lambda asked: acknowledge(asked, act, now), now)

    def close(self, gate: GateId, outcome: str, now: int) -> Gate:
        """Note that nothing more follows from a gate. Repeats change nothing. Raises `Unknown`, `GateClosed` while it is pending."""
        return self._step(gate, lambda asked: close(asked, outcome, now), now)

    def _step(self, number: GateId, judge: Callable[[Gate], Gate], now: int) -> Gate:
        with self._engine.transaction():
            before = self._engine.gates.find(number)
            after = judge(before)
            if after == before:
                return before
            if not self._engine.gates.replace(before, after):
                raise GateClosed(number, describe_end(self._engine.gates.find(number), now))
            self._engine.bump()
        return after

    # -- finding ------------------------------------------------------------------------------------------------------

    def find(self, gate: GateId) -> Gate:
        """Return a gate. Raises `Unknown`."""
        return self._engine.gates.find(gate)

    def all(
        self, state: GateState | None = None, subject: str | None = None, *, run: str | None = None, alike: Digest | None = None
    ) -> Sequence[Gate]:
        """Return gates, oldest first."""
        return self._engine.gates.all(state, subject, run=run, alike=alike)

    def about(self, act: Digest) -> Sequence[Gate]:
        """Return the gates about exactly one act, oldest first."""
        return self._engine.gates.asking(act)

    def unclosed(self) -> Sequence[Gate]:
        """Return the gates from which something may still follow, oldest first."""
        return self._engine.gates.unclosed()

    # -- bypasses -----------------------------------------------------------------------------------------------------

    def open_bypass(self, rule: str, policy: str, by: Identity, reason: str, seconds: int, now: int) -> Bypass:
        """Have a rule of the policy with this hash ask nobody for a while. Raises `NotEntitled`, `ScopeInvalid`."""
        bypass = make_bypass(GateId(self._make_id("b")), rule, policy, by, reason, seconds, now)
        with self._engine.transaction():
            self._engine.gates.add_bypass(bypass)
            self._engine.bump()
        return bypass

    def end_bypass(self, bypass: GateId, now: int) -> bool:
        """End a bypass, and tell whether this call did. Raises `Unknown`."""
        with self._engine.transaction():
            self._engine.gates.find_bypass(bypass)
            ended = self._engine.gates.end_bypass(bypass, now)
            self._engine.bump()
        return ended

    def bypasses(self, since: int | None = None) -> Sequence[Bypass]:
        """Return bypasses, oldest first; with `since` those that neither ended nor expired at that time."""
        return self._engine.gates.bypasses(since)

    def bypass(self, bypass: GateId) -> Bypass:
        """Return a bypass. Raises `Unknown`."""
        return self._engine.gates.find_bypass(bypass)

    def covering(self, asking: Iterable[str], policy: str, now: int) -> tuple[Bypass, ...]:
        """Return a live bypass for each of the rules that ask, nothing when one of them has none."""
        return covering(self._engine.gates.bypasses(now), asking, policy, now)


def _because(gate: Gate) -> str:
    return f": {gate.comment}" if gate.comment else ""
