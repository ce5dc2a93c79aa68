"""The flight recorder: what is about to happen, what came of it, what was seen. What makes it checkable is `trust.evidence`.

1. An intent is on stable storage when `intend` returns; callers that come together share one
   transaction and one sync. Without it the act must not happen.
2. Outcomes and facts are visible at once, survive the end of the process at once, and are on stable storage soon; `flush` waits for it.
3. Each intent is concluded once. What was announced and never concluded is `unconcluded`, for the next start to resolve.
4. Bodies hold no secrets: what reads like a token is replaced before it is stored.
5. A chain that does not verify is not continued: `ChainBroken` until a person has looked and the state is opened again.
6. Any thread, several processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from trust.batching import Batcher
from trust.canonical import canonical, redact
from trust.chain import COMMITMENT_BYTES, GENESIS, SALT_BYTES, Draft, Row, Walked, check_draft, seal, walk
from trust.contract import Engine
from trust.errors import ChainBroken, Unknown
from trust.evidence import Evidence, grow_tree
from trust.merkle import TILE
from trust.model import Identity, Record, RecordPhase, Sequence

_CHUNK = 5000
_TAIL = 64


class Recorder:
    """Appends to the chain and reads it."""

    def __init__(self, engine: Engine, evidence: Evidence, entropy: Callable[[int], bytes]) -> None:
        self._engine = engine
        self._evidence = evidence
        self._entropy = entropy
        self._broken = self._check_tail()
        self._intents: Batcher[Draft, Sequence] = Batcher(self._announce)

    def intend(self, kind: str, identity: Identity | None, body: Mapping[str, Any], now: int) -> Sequence:
        """Record what is about to happen, durably, and return its number. Raises `RecorderUnavailable`, `ChainBroken`."""
        draft = _draft(RecordPhase.INTENT, kind, identity, body, now)
        if self._engine.in_transaction():
            return self._announce([draft])[0]
        return self._intents.submit(draft)

    def conclude(self, intent: Sequence, body: Mapping[str, Any], now: int) -> Sequence:
        """Record what came of an intent and return the number. Raises `Unknown` when it is no intent or was concluded."""
        text = redact(canonical(dict(body)))
        with self._engine.transaction(durable=False):
            if not self._engine.records.close_intent(intent):
                raise Unknown(intent, "no such intent, or it was concluded")
            _, _, _, _, kind, principal, run, lease, *_ = self._engine.records.find(intent)
            return self._append([Draft(now, RecordPhase.OUTCOME.value, intent, kind, principal, run, lease, text)])[0]

    def state(self, kind: str, identity: Identity | None, body: Mapping[str, Any], now: int) -> Sequence:
        """Record a fact and return its number."""
        draft = _draft(RecordPhase.FACT, kind, identity, body, now)
        with self._engine.transaction(durable=False):
            return self._append([draft])[0]

    def unconcluded(self) -> list[Record]:
        """Return the intents without an outcome, oldest first."""
        return [_record(row) for row in self._engine.records.open_intents()]

    def record(self, sequence: int) -> Record:
        """Return one record. Raises `Unknown`."""
        return _record(self._evidence.find(sequence))

    def records(self, after: int, limit: int | None, kind: str | None, run: str | None) -> Iterator[Record]:
        """Yield records after a number, in order, sealed ones too; those that were given up after their time are passed over."""
        yield from islice(map(_record, chain(self._evidence.sealed_rows(after, kind, run), self._rows(after, limit, kind, run))), limit)

    def _rows(self, after: int, limit: int | None, kind: str | None, run: str | None) -> Iterator[Row]:
        left = limit
        while left is None or left > 0:
            rows = self._engine.records.after(after, _CHUNK if left is None else min(_CHUNK, left), kind, run)
            if not rows:
                return
            yield from rows
            after = rows[-1][0]
            left = None if left is None else left - len(rows)

    def head(self) -> tuple[int, str]:
        """Return number and hash of the last record."""
        sequence, digest = self._engine.records.head()
        return sequence, digest.hex()

    def distrust(self, why: str) -> None:
        """Append nothing more: the record was found wrong. It holds until the state is opened again."""
        self._broken = why

    def _announce(self, drafts: list[Draft]) -> list[Sequence]:
        with self._engine.transaction():
            sequences = self._append(drafts)
            self._engine.records.await_outcomes(sequences)
        return sequences

    def _append(self, drafts: list[Draft]) -> list[Sequence]:
        if self._broken:
            raise ChainBroken("record", self._broken)
        sequence, digest = self._engine.records.head()
        rows: list[Row] = []
        before = sequence
        for draft in drafts:
            rows.append(seal(draft, sequence + 1, digest, self._entropy(SALT_BYTES)))
            sequence, digest = rows[-1][0], rows[-1][10]
        self._engine.records.append(rows)
        if before // TILE != sequence // TILE:
            grow_tree(self._engine, before, sequence)
        return [Sequence(row[0]) for row in rows]

    def _check_tail(self) -> str:
        """Return why the last records do not verify, empty when they do: the cheap part of `verify`, at every start."""
        last, _ = self._engine.records.head()
        start = max(0, last - _TAIL, self._engine.records.first() - 1)
        rows = self._engine.records.after(start, _TAIL)
        return walk(rows, Walked(start, rows[0][9] if start else GENESIS)).why if rows else ""


def _draft(phase: RecordPhase, kind: str, identity: Identity | None, body: Mapping[str, Any], now: int) -> Draft:
    lease = identity.lease if identity is not None else None
    draft = Draft(
        time=now,
        phase=phase.value,
        refers=None,
        kind=kind,
        principal=identity.principal.name if identity is not None else "",
        run=lease.run if lease is not None else "",
        lease=lease.id if lease is not None else "",
        body=redact(canonical(dict(body))),
    )
    check_draft(draft)
    return draft


def _record(row: Row) -> Record:
    sequence, time, phase, refers, kind, principal, run, lease, body, previous, digest, salt = row
    return Record(
        sequence=Sequence(sequence),
        time=time,
        phase=RecordPhase(phase),
        kind=kind,
        principal=principal,
        run=run,
        lease=lease,
        body={"redacted": salt.hex()} if not body and len(salt) == COMMITMENT_BYTES else json.loads(body),
        refers=None if refers is None else Sequence(refers),
        previous=previous.hex(),
        hash=digest.hex(),
    )
