"""Questions for people, as the daemon keeps them going: answering, ending, and carrying out what was decided.

1. An answer names the digest it read; trust lets exactly one decision count. What was approved is carried out at once by the executor of
   its kind; a kind without one is done by whoever asked, who repeats the act with the answer.
2. Whatever was decided is carried out until the gate is closed: after a crash at the next start, after a failure every minute.
3. A gate whose act is not what would happen any more is superseded before an answer can count, and says by what.
4. Nobody answering applies the fallback that was frozen with the question; an approval that nobody used lapses.
5. Every step is recorded: asked, each answer, taken over, closed, and every other end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import Protocol

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.asking import Asking
from nasd.faults import as_fault
from nasd.outbox import enqueue
from nasd.views import view_gate
from nasd.wiring import Appliance
from store.errors import StoreError
from trust.errors import GateClosed, TrustError
from trust.gates import kind_of
from trust.model import Digest, Gate, GateId, GatePhase, GateState, Identity

MOST_WAITING = 16
"""How many callers wait for gates at once; each holds a thread, and the next ones ask again instead."""
LONGEST_WAIT = 25.0
_STEP = 0.05
_LOOK_SECONDS = 1
_RETRY_SECONDS = 60
log = logging.getLogger("nasd.gates")


class Executor(Protocol):
    """Who carries out what was decided about one kind of act."""

    def carry_out(self, gate: Gate, identity: Identity | None) -> Document:
        """Do what follows from a gate that is not pending. Repeats change nothing; the ``decision`` in the answer closes the gate."""

    def successor(self, gate: Gate) -> str:
        """Return empty while the act of an open gate is what would happen, else what took its place: a gate, or ``commit:<id>``."""


class Gates:
    """Answers, ends and carries out gates. Any thread may call."""

    def __init__(self, appliance: Appliance, proposals: Executor) -> None:
        """Work on the state of `appliance`; `proposals` carries out what is decided about them."""
        self._appliance = appliance
        self._trust = appliance.trust
        self._questions = appliance.trust.questions
        self._asking = Asking(appliance)
        self._executors: dict[str, Executor] = {"proposal": proposals}
        self._waiting = threading.Semaphore(MOST_WAITING)
        self._draining = threading.Event()
        self._next_look = 0
        self._next_retry = 0

    def register(self, kind: str, executor: Executor) -> None:
        """Have gates whose subject begins with `kind` carried out by `executor`."""
        self._executors[kind] = executor

    # -- answers ------------------------------------------------------------------------------------------------------

    def answer(self, gate: str, digest: str, identity: Identity, comment: str, *, approve: bool) -> Document:
        """Answer a gate and carry the answer out.

        Raises `trust.errors.GateClosed`, `GateMismatch` and `NotEntitled`; then nothing happened.
        """
        asked = self._questions.find(GateId(gate))
        self._supersede_if_moved(asked)
        verdict = "approve" if approve else "reject"
        body = {"gate": gate, "digest": digest, "verdict": verdict, "comment": comment, "by": identity.principal.name, "run": asked.run}
        with recorded(self._trust, self._appliance.clock, "gate.answer", identity, body) as outcome:
            answered = self._questions.answer(GateId(gate), Digest(digest), approve, identity, comment, self._appliance.now())
            outcome["state"] = answered.state.value
        result = self.carry_out(answered, identity) if answered.state is not GateState.PENDING else {"decision": "pending"}
        return view_gate(self._questions.find(answered.id)) | {"result": result}

    def answer_alike(
        self, alike: str, answers: Iterable[tuple[str, str]], identity: Identity, comment: str, *, approve: bool
    ) -> list[Document]:
        """Answer several gates of one class, each by its own digest, and return what became of each; one that fails stops no other."""
        answered: list[Document] = []
        for number, digest in answers:
            try:
                self._require_alike(number, alike)
                answered.append(self.answer(number, digest, identity, comment, approve=approve))
            except (Fault, TrustError, StoreError) as error:
                fault = as_fault(error)
                answered.append({"gate": number, "error": {"code": fault.kind.value, "message": fault.message, "hint": fault.hint}})
        return answered

    def _require_alike(self, number: str, alike: str) -> None:
        if self._questions.find(GateId(number)).alike != alike:
            raise Fault(Kind.PRECONDITION, f"{number} is not like the others", hint="answer it by itself")

    def withdraw(self, gate: Gate, identity: Identity, comment: str) -> Document:
        """Take a question back. Raises `trust.errors.GateClosed` once its act began or it ended."""
        now = self._appliance.now()
        with self._trust.transaction():
            withdrawn = self._questions.withdraw(gate.id, comment or "whoever asked took it back", now)
            self._trust.state("gate.withdrawn", identity, {"gate": gate.id, "run": gate.run, "comment": comment}, now)
        self.carry_out(withdrawn, identity)
        return view_gate(self._questions.find(gate.id))

    # -- carrying out -------------------------------------------------------------------------------------------------

    def carry_out(self, gate: Gate, identity: Identity | None) -> Document:
        """Do what follows from a decided gate, and close it. Repeats change nothing."""
        executor, approved = self._executors.get(kind_of(gate.subject)), gate.state is GateState.APPROVED
        if executor is None:
            if not approved:
                self._asking.close(gate, gate.state.value, identity)
            return {"decision": gate.state.value}
        result = executor.carry_out(gate, identity)
        self._asking.close(gate, str(result["decision"]) if approved else gate.state.value, identity)
        return result

    def finish(self) -> None:
        """Carry out everything decided that a crash left behind; an act that was under way in a process that died is closed as unknown."""
        for gate in self._questions.unclosed():
            if gate.phase is GatePhase.ACKNOWLEDGED and kind_of(gate.subject) not in self._executors:
                self._asking.close(gate, "unknown: the process ended in between", None)
            elif gate.phase is not GatePhase.PENDING:
                self.carry_out(gate, None)

    # -- time ---------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what time brings: ends of gates at once, gates that moved every second, what failed every minute."""
        now = self._appliance.now()
        self.expire()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            self.supersede_moved()
        if now >= self._next_retry:
            self._next_retry = now + _RETRY_SECONDS
            self._retry(now)

    def expire(self) -> list[Gate]:
        """End what nobody answered or used in time, apply the fallbacks, and return the gates."""
        now = self._appliance.now()
        if not self._questions.due(now):
            return []
        with self._trust.transaction():
            ended = self._questions.expire(now)
            for gate in ended:
                self._trust.state(f"gate.{gate.state.value}", None, {"gate": gate.id, "run": gate.run, "fallback": gate.fallback}, now)
                if gate.state is GateState.EXPIRED:
                    enqueue(self._appliance, "expired", gate, now)
        for gate in ended:
            self.carry_out(gate, None)
        return ended

    def supersede_moved(self) -> list[Gate]:
        """End the gates whose act is not what would happen any more, and return them."""
        looked = [self._supersede_if_moved(gate) for gate in self._questions.unclosed()]
        return [gate for gate in looked if gate is not None]

    def _supersede_if_moved(self, gate: Gate) -> Gate | None:
        executor = self._executors.get(kind_of(gate.subject))
        if executor is None or gate.state not in {GateState.PENDING, GateState.APPROVED} or gate.phase is GatePhase.ACKNOWLEDGED:
            return None
        successor = executor.successor(gate)
        return self.supersede(gate, successor) if successor else None

    def supersede(self, gate: Gate, successor: str) -> Gate | None:
        """End a gate in favour of what took its place; None when it had ended already."""
        now = self._appliance.now()
        try:
            with self._trust.transaction():
                superseded = self._questions.supersede(gate.id, successor, now)
                self._trust.state("gate.superseded", None, {"gate": gate.id, "run": gate.run, "successor": successor}, now)
        except GateClosed:
            return None
        self.carry_out(superseded, None)
        return superseded

    def _retry(self, now: int) -> None:
        for gate in self._questions.unclosed():
            decided = gate.phase is GatePhase.DECIDED and gate.answered is not None and gate.answered + _RETRY_SECONDS <= now
            if decided and kind_of(gate.subject) in self._executors:
                log.info("%s was decided and not carried out: trying again", gate.id)
                self.carry_out(gate, None)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def wait(self, gate: str, seconds: float, *, until_closed: bool = False) -> Gate:
        """Return a gate once it is decided (or with `until_closed` carried out), or when the time is over.

        At most `MOST_WAITING` callers wait; the others get the gate as it is.
        """
        found = self._questions.find(GateId(gate))
        if not _waits(found, until_closed) or not self._waiting.acquire(blocking=False):
            return found
        try:
            return self._wait(found, time.monotonic() + min(seconds, LONGEST_WAIT), until_closed)
        finally:
            self._waiting.release()

    def _wait(self, gate: Gate, end: float, until_closed: bool) -> Gate:
        epoch = self._trust.epoch()
        while _waits(gate, until_closed) and time.monotonic() < end and not self._draining.wait(_STEP):
            if (moved := self._trust.epoch()) != epoch:
                epoch, gate = moved, self._questions.find(gate.id)
        return self._questions.find(gate.id)

    def drain(self) -> None:
        """Let everybody who waits go."""
        self._draining.set()


def _waits(gate: Gate, until_closed: bool) -> bool:
    if gate.state is GateState.PENDING:
        return True
    return until_closed and gate.phase is not GatePhase.CLOSED
