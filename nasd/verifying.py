"""Verifying the record, with a daemon or without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from nasd.config import Settings
from nasd.errors import NotInitialised
from nasd.outside import Outside, compare
from trust.checkpoints import Checkpoint
from trust.model import Verification
from trust.service import Trust


def verify_record(settings: Settings, anchor: str | None) -> Document:
    """Walk the record of a data directory that nobody serves, against the checkpoints that are kept outside of its database.

    Raises `NotInitialised`, `Kind.INVALID` for a malformed anchor.
    """
    if not settings.trust.is_dir():
        raise NotInitialised(f"{settings.home} holds no Agent NAS yet", hint="name the data directory with NAS_HOME")
    trust = Trust.open(settings.trust)
    try:
        outside, proofs = compare(trust.evidence, Outside(settings).notes())
        found = trust.verify(parse_anchor(anchor), outside)
        if found.ok and proofs:
            found = replace(found, ok=False, why=proofs[0], completeness="another record than the one that was kept outside")
        return view_verification(doubt(found, settings, outside))
    finally:
        trust.close()


def doubt(found: Verification, settings: Settings, outside: Sequence[tuple[str, Checkpoint]]) -> Verification:
    """Return a verification that says so when all it was compared with lies in the data directory itself."""
    if not found.ok or not outside or any(not where.startswith(f"{settings.checkpoints}/") for where, _ in outside):
        return found
    told = f"{found.completeness}; nothing outside of the directory was compared: whether it is an old copy of itself, completeness unknown"
    return replace(found, completeness=told)


def parse_anchor(text: str | None) -> tuple[int, str] | None:
    """Return the anchor ``SEQUENCE:HASH`` as number and text, None for None. Raises `Kind.INVALID`."""
    if text is None:
        return None
    sequence, separator, digest = text.partition(":")
    if not separator or not sequence.isdigit():
        raise Fault(Kind.INVALID, f"{text!r} is not an anchor", hint="write SEQUENCE:HASH as an earlier `nas verify` printed it")
    return int(sequence), digest


def view_verification(result: Verification) -> Document:
    """Return the document of a verification."""
    return {
        "ok": result.ok,
        "records": result.records,
        "first_bad": result.first_bad,
        "why": result.why,
        "completeness": result.completeness,
        "head": result.head,
    }
