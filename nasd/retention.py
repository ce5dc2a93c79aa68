"""What becomes of old records: they are sealed into files of their own, and given up when their time is over.

1. Nothing is sealed or given up unless a setting says so: ``record_age`` and ``record_kept``, both off by default.
2. Each step is announced and concluded in the record; the digest of a segment's file, also after a redaction, stands in its outcome.
3. Redaction is for people who may administer: a body is taken away with a reason, and its commitment stays.
"""

from __future__ import annotations

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.acts import recorded
from nasd.wiring import Appliance
from trust.errors import ChainBroken, Unknown
from trust.model import Identity

_EVERY_SECONDS = 3600


class Retention:
    """Seals and gives up, for one data directory."""

    def __init__(self, appliance: Appliance) -> None:
        """Work on the record of `appliance`, by its settings."""
        self._appliance = appliance
        self._evidence = appliance.trust.evidence
        self._next = 0

    def tick(self) -> None:
        """Every hour seal and give up what the settings say."""
        settings, now = self._appliance.settings, self._appliance.now()
        if now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        if settings.record_age:
            self.seal(now - int(settings.record_age), None)
        if settings.record_kept:
            self.give_up(now - int(settings.record_kept))

    def seal(self, older_than: int, identity: Identity | None) -> list[Document]:
        """Seal what was recorded before a time and return the segments."""
        sealed = []
        while (span := self._evidence.next_segment(older_than)) is not None:
            first, last = span
            with recorded(self._appliance.trust, self._appliance.clock, "record.seal", identity, {"first": first, "last": last}) as outcome:
                segment = self._evidence.seal(first, last, self._appliance.now())
                outcome["digest"] = segment.digest.hex()
            sealed.append({"first": first, "last": last, "digest": segment.digest.hex(), "file": str(self._evidence.file_of(segment))})
        return sealed

    def give_up(self, sealed_before: int) -> None:
        """Remove the files of the segments that were sealed before a time, oldest first."""
        for segment in self._evidence.segments():
            if segment.removed is not None:
                continue
            if segment.sealed >= sealed_before:
                return
            body = {"first": segment.first, "last": segment.last, "digest": segment.digest.hex()}
            with recorded(self._appliance.trust, self._appliance.clock, "record.give_up", None, body):
                self._evidence.give_up(segment, self._appliance.now())

    def redact(self, sequence: int, reason: str, identity: Identity) -> Document:
        """Take the body of a record away. Raises `Kind.CONFLICT` where that cannot be, `trust.errors.Unknown`."""
        try:
            self._evidence.check_redactable(sequence)
        except ChainBroken as error:
            raise Fault(Kind.CONFLICT, f"record {sequence} cannot be redacted: {error.why}", hint="see `nas record list`") from error
        body = {"sequence": sequence, "reason": reason}
        with recorded(self._appliance.trust, self._appliance.clock, "record.redact", identity, body) as outcome:
            outcome["commitment"] = commitment = self._evidence.redact(sequence).hex()
            if segment := next((each for each in self._evidence.segments() if each.first <= sequence <= each.last), None):
                outcome["digest"] = segment.digest.hex()
        return {"sequence": sequence, "commitment": commitment}


def resolve_seal(appliance: Appliance, first: int) -> str:
    """Return what became of a seal that a crash left open."""
    return "done" if any(segment.first == first for segment in appliance.trust.evidence.segments()) else "undone"


def resolve_give_up(appliance: Appliance, first: int) -> str:
    """Finish a giving up that a crash left open: what is marked loses its file."""
    evidence = appliance.trust.evidence
    for segment in evidence.segments():
        if segment.first == first and segment.removed is not None:
            evidence.give_up(segment, appliance.now())
            return "done"
    return "undone"


def resolve_redact(appliance: Appliance, sequence: int) -> str:
    """Finish a redaction that a crash left open: it was asked for, and repeats do nothing."""
    try:
        appliance.trust.evidence.redact(sequence)
    except Unknown:
        return "undone"
    return "done"
