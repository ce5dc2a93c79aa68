"""The record as OpenTelemetry sees it: an act is a span from its intent to its outcome, a fact is a log line.

1. It reads the committed record and nothing else; nobody who decides or records ever waits for it. What a collector does not take is sent
   again from the number that was kept; a collector that is gone costs memory for one batch.
2. Ids are derived from the record, so that what is sent twice is recognised: the trace is the run, the span the hash of its intent.
3. No payload, no path, no secret: kinds, numbers, names of principals, runs, leases and rules, and how an act ended.
4. Without the setting ``telemetry_endpoint`` nothing of this runs, and its packages need not be installed (extra ``telemetry``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from nasd.errors import Misconfigured
from nasd.wiring import Appliance
from trust.errors import TrustError, Unknown
from trust.model import Record, RecordPhase

BATCH = 512
_STEP = 1.0
_LONGEST_PAUSE = 60.0
_PATIENCE = 10.0
_KIND, _ID = "telemetry", "position"
log = logging.getLogger("nasd.telemetry")


class Collector(Protocol):
    """What takes batches."""

    def send(self, acts: Sequence[tuple[Record, Record]], facts: Sequence[Record]) -> bool:
        """Send acts (each an intent and its outcome) and facts, and tell whether all of them arrived."""

    def close(self) -> None:
        """Give up what is under way."""


class Telemetry:
    """Reads the record after a kept number and sends it on, in a thread of its own."""

    def __init__(self, appliance: Appliance) -> None:
        """Send the record of `appliance` to the collector that its settings name. Raises `Misconfigured` without the packages for it."""
        self._trust = appliance.trust
        self._stop = threading.Event()
        self._endpoint = appliance.settings.telemetry_endpoint
        self._collector: Collector | None = _connect(self._endpoint, str(appliance.settings.home)) if self._endpoint else None
        self._thread = threading.Thread(target=self._loop, name="telemetry", daemon=True)
        self.failure = ""
        """Why the last batch did not arrive, empty when it did."""

    def start(self) -> None:
        """Begin, where a collector is named."""
        if self._collector is not None:
            self._thread.start()

    def close(self) -> None:
        """End; what a collector did not take by now is sent after the next start."""
        self._stop.set()
        if self._collector is not None:
            self._collector.close()
        if self._thread.ident is not None:
            self._thread.join()

    def position(self) -> tuple[int, int]:
        """Return the number of the last record that arrived, and the version of the document that keeps it (0: none)."""
        try:
            kept = self._trust.document(_KIND, _ID)
        except Unknown:
            return 0, 0
        return int(kept.body["sequence"]), kept.version

    def send_batch(self) -> bool:
        """Send the next batch and tell whether there was one that arrived."""
        position, kept = self.position()
        records = list(islice(self._trust.records(position, BATCH), BATCH))
        if not records or self._collector is None:
            return False
        acts = [(self._intent_of(record), record) for record in records if record.phase is RecordPhase.OUTCOME]
        if not self._collector.send(acts, [record for record in records if record.phase is RecordPhase.FACT]):
            self.failure = f"{self._endpoint} did not take the records after {position}"
            return False
        self.failure = ""
        self._trust.put_document(_KIND, _ID, {"sequence": records[-1].sequence}, kept)
        return True

    def _intent_of(self, outcome: Record) -> Record:
        try:
            return self._trust.record(int(outcome.refers or 0))
        except Unknown:
            return outcome  # it was given up after its time: the act has no beginning here

    def _loop(self) -> None:
        pause = _STEP
        while not self._stop.wait(pause):
            try:
                arrived = self.send_batch()
            except TrustError as error:
                self.failure, arrived = str(error), False
            if self.failure:
                pause = min(pause * 2, _LONGEST_PAUSE)
                log.warning("%s; trying again in %d s", self.failure, pause)
            else:
                pause = 0.0 if arrived else _STEP


def _connect(endpoint: str, home: str) -> Collector:
    try:
        from nasd.spans import OtlpCollector
    except ImportError as error:
        raise Misconfigured(
            f"telemetry_endpoint is set, and {error.name} is not installed", hint="pip install 'agent-nas[telemetry]'"
        ) from error
    return OtlpCollector(endpoint, home, _PATIENCE)
