"""The notary: signs checkpoints of the record, keeps them outside of it, and has witnesses cosign them.

1. A checkpoint is signed every `EVERY_RECORDS` records, every day on which something was recorded, on demand, and when the daemon drains.
2. Before the daemon serves, every checkpoint kept outside is compared with the record; one that proves a loss keeps it from starting. While
   it runs, a witness that shows more of our own signatures than we have stops the record.
3. It has a thread of its own: nobody waits for a disk elsewhere or a network, and a failure of either is told and tried again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from interfaces.port import Document
from nasd.durations import render_time
from nasd.errors import RolledBack
from nasd.outside import Outside, compare
from nasd.retention import Retention
from nasd.wiring import Appliance
from nasd.witnesses import Standing, WitnessAhead, WitnessFailure, last_note, read_witness, submit
from trust.checkpoints import Checkpoint, Kept
from trust.errors import TrustError, Unknown

EVERY_RECORDS = 4096
EVERY_SECONDS = 86400
_STEP = 1.0
_START_PATIENCE = 2.0
log = logging.getLogger("nasd.notary")


class Notary:
    """Checkpoints of one data directory."""

    def __init__(self, appliance: Appliance) -> None:
        """Sign for the record of `appliance`."""
        self._appliance = appliance
        self._evidence = appliance.trust.evidence
        self._outside = Outside(appliance.settings)
        self._retention = Retention(appliance)
        self._witnesses = [Standing(read_witness(url, key)) for url, key in appliance.settings.witness_pairs]
        self._signing = threading.Lock()
        self._failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="notary", daemon=True)

    def check(self) -> None:
        """Compare the record with every checkpoint kept outside. Raises `RolledBack` when one proves that records are gone."""
        trust = self._appliance.trust
        if self._evidence.key_is_fresh:
            trust.state("record.key", None, {"verifier": self._evidence.verifier.render()}, self._appliance.now())
        _, proofs = compare(self._evidence, self._notes())
        if proofs:
            raise RolledBack(
                "; ".join(proofs), hint="put the newer copy back; `nas record accept` goes on without what is lost, and says so"
            )

    def outside(self) -> list[tuple[str, Checkpoint]]:
        """Return every checkpoint of this log that is kept outside of the database, each with where."""
        return compare(self._evidence, self._notes())[0]

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Sign what there is and end."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        try:
            kept = self._sign()
        except TrustError as error:
            log.error("no last checkpoint: %s", error)
            return
        self._submit_all(kept)

    @property
    def retention(self) -> Retention:
        """Return what seals, gives up and redacts."""
        return self._retention

    def sign(self) -> Document:
        """Sign the head now, have it cosigned, and return what came of it. Raises `trust.errors.Unknown` without records."""
        kept = self._sign()
        self._submit_all(kept)
        return {"size": kept.size, "note": self._evidence.last_checkpoint().render(), "failures": self._told()}

    def keys(self) -> Document:
        """Return the public keys of the log and of its witnesses."""
        return {"log": self._evidence.verifier.render(), "witnesses": [each.address.key.render() for each in self._witnesses]}

    def status(self) -> Document:
        """Return how far the record is signed, kept elsewhere and cosigned."""
        size = self._evidence.head()[0]
        try:
            last = self._evidence.last_checkpoint()
            signed = {"size": last.size, "time": render_time(last.time), "behind": size - last.size}
        except Unknown:
            signed = {"size": 0, "time": None, "behind": size}
        return {
            "records": size,
            "origin": self._evidence.verifier.name,
            "checkpoint": signed,
            "witnesses": [self._describe(each, size) for each in self._witnesses],
            "anchors": [str(path) for path in self._outside.anchors()],
            "segments": [
                {"first": each.first, "last": each.last, "removed": render_time(each.removed) if each.removed else None}
                for each in self._evidence.segments()
            ],
            "failures": self._told(),
        }

    def _describe(self, standing: Standing, size: int) -> Document:
        seen = self._evidence.witnessed(standing.address.key.name)
        return {
            "name": standing.address.key.name,
            "url": standing.address.url,
            "size": seen,
            "behind": size - seen,
            "failure": standing.failure,
        }

    def _told(self) -> list[str]:
        return [*self._failures, *(f"{each.address.key.name}: {each.failure}" for each in self._witnesses if each.failure)]

    def _sign(self) -> Kept:
        with self._signing:
            kept = self._evidence.checkpoint(self._appliance.now())
            self._failures = self._outside.keep(kept)
        for failure in self._failures:
            log.error("the checkpoint of %d records is not kept at %s", kept.size, failure)
        return kept

    def _loop(self) -> None:
        while not self._stop.wait(_STEP):
            try:
                self.tick()
            except (TrustError, OSError) as error:
                log.error("checkpoints: %s", error)

    def tick(self) -> None:
        """Do what is due: a checkpoint, a submission, what is old."""
        if self._is_due():
            self._sign()
        self._retention.tick()
        try:
            self._submit_all(self._evidence.last_checkpoint())
        except Unknown:
            return

    def _is_due(self) -> bool:
        size = self._evidence.head()[0]
        try:
            last = self._evidence.last_checkpoint()
        except Unknown:
            return size > 0
        return size - last.size >= EVERY_RECORDS or (size > last.size and self._appliance.now() - last.time >= EVERY_SECONDS)

    def _submit_all(self, kept: Kept) -> None:
        for standing in self._witnesses:
            if self._evidence.witnessed(standing.address.key.name) < kept.size and standing.next_try <= self._appliance.clock():
                self._submit(standing, kept)

    def _submit(self, standing: Standing, kept: Kept) -> None:
        try:
            submit(standing.address, self._evidence, kept)
        except WitnessAhead as error:
            standing.fail(str(error), self._appliance.clock())
            self._believe(standing)
        except WitnessFailure as error:
            standing.fail(str(error), self._appliance.clock())
            log.warning("witness %s: %s", standing.address.key.name, error)
        else:
            standing.succeed()
            self._failures = self._outside.keep(self._evidence.last_checkpoint())

    def _believe(self, standing: Standing) -> None:
        """Stop the record when a witness holds our own signature over more than there is; its bare word stops nothing."""
        _, proofs = compare(self._evidence, self._ask(standing))
        for proof in proofs:
            log.critical("%s", proof)
            self._appliance.trust.distrust(proof)

    def _notes(self) -> Iterator[tuple[str, str]]:
        yield from self._outside.notes()
        for standing in self._witnesses:
            yield from self._ask(standing)

    def _ask(self, standing: Standing) -> Iterator[tuple[str, str]]:
        try:
            note = last_note(standing.address, self._evidence.verifier.name, _START_PATIENCE)
        except WitnessFailure as error:
            log.warning("witness %s: %s", standing.address.key.name, error)
            return
        if note is not None:
            yield f"the witness {standing.address.key.name}", note
