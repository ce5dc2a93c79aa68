"""What records say to one another: acts and their outcomes, leases and their ends, questions and their answers, and the clock.

1. Every outcome names an earlier intent, and no intent has two. An intent that is old and has none is an orphan.
2. Nobody announces an act under a lease that was revoked before; a moment of grace covers acts that were under way.
3. A question is taken over once, by exactly the act that was asked about, after somebody approved it.
4. Time goes forward, but for the clock's corrections of up to a skew.
5. What begins before the first record here, or was redacted, is given the benefit of the doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from verifier.records import Record

GRACE_SECONDS = 5
Complaint = tuple[str, str]
"""Which check, and why."""


@dataclass(slots=True)
class _Question:
    act: str
    approved: bool = False
    taken: bool = False


@dataclass(slots=True)
class Meaning:
    """Reads records in order and says what cannot be. `whole` tells whether the first record ever is the first one here."""

    skew: int
    whole: bool
    last_time: int = 0
    open: dict[int, Record] = field(default_factory=dict)
    _revoked: dict[str, int] = field(default_factory=dict)
    _questions: dict[str, _Question] = field(default_factory=dict)

    def read(self, record: Record) -> Iterable[Complaint]:
        """Take the next record and return what is wrong with it."""
        if record.phase == "fact" and record.kind != "gate.acknowledged" and record.time >= self.last_time:
            self.last_time = record.time
            return ()
        return self._judge(record)

    def _judge(self, record: Record) -> Iterator[Complaint]:
        if record.time < self.last_time - self.skew:
            yield "time", f"its time is {self.last_time - record.time} s before that of an earlier one"
        self.last_time = max(self.last_time, record.time)
        if record.phase == "intent":
            self.open[record.sequence] = record
            if record.lease and record.time > self._revoked.get(record.lease, record.time) + GRACE_SECONDS:
                yield "leases", f"an act ({record.kind}) under the lease {record.lease}, which was revoked before"
        elif record.phase == "outcome":
            yield from self._conclude(record)
        elif record.kind == "gate.acknowledged":
            yield from self._acknowledge(record.body)

    def orphans(self, older_than: int) -> list[Record]:
        """Return the intents without outcome that are older than so many seconds, by the clock of the record."""
        return [intent for intent in self.open.values() if intent.time < self.last_time - older_than]

    def _conclude(self, record: Record) -> Iterator[Complaint]:
        intent = self.open.pop(record.refers, None)
        if intent is None:
            if self.whole:
                yield "intents", f"an outcome of {record.refers}, which is no open intent"
            return
        if intent.kind != record.kind:
            yield "intents", f"an outcome of {record.kind}, and {record.refers} announced {intent.kind}"
        said, told = intent.body or {}, record.body
        if told.get("result") == "done":
            self._learn(record, said, told)

    def _learn(self, record: Record, said: dict[str, Any], told: dict[str, Any]) -> None:
        if record.kind == "lease.revoke":
            for lease in told.get("revoked", []):
                self._revoked.setdefault(str(lease), record.time)
        elif record.kind == "gate.open" and "gate" in told:
            self._questions.setdefault(str(told["gate"]), _Question(str(said.get("act"))))
        elif record.kind == "gate.answer" and told.get("state") == "approved":
            question = self._questions.get(str(said.get("gate")))
            if question is not None:
                question.approved = True

    def _acknowledge(self, body: dict[str, Any]) -> Iterator[Complaint]:
        question = self._questions.get(str(body.get("gate")))
        if question is None:
            return
        if not question.approved:
            yield "gates", f"{body.get('gate')} was taken over and nobody approved it"
        if question.taken:
            yield "gates", f"{body.get('gate')} was taken over twice"
        if question.act != str(body.get("act")):
            yield "gates", f"{body.get('gate')} was taken over by another act than the one that was asked about"
        question.taken = True
