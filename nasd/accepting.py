"""Going on after a loss: the record says what is gone, and the log gets another name, so that nobody takes it for the whole one."""

from __future__ import annotations

from interfaces.port import Document
from nasd.config import Settings
from nasd.errors import StartError
from nasd.outside import Outside, compare
from nasd.wiring import open_appliance


def accept_loss(settings: Settings) -> Document:
    """Record what checkpoints kept outside prove to be lost, renew the log's key, and begin to sign anew.

    Raises `StartError` when nothing proves a loss, or the data directory is in use.
    """
    appliance = open_appliance(settings, "owner")
    try:
        evidence, outside, now = appliance.trust.evidence, Outside(settings), appliance.now()
        _, proofs = compare(evidence, outside.notes())
        if not proofs:
            raise StartError("no checkpoint kept outside proves a loss", hint="start the daemon with `nas serve`")
        former = evidence.verifier.name
        key = evidence.renew_key()
        outside.retire(f"until-{now}")
        appliance.trust.state("record.restart", None, {"former": former, "verifier": key.render(), "lost": proofs}, now)
        kept = evidence.checkpoint(now)
        failures = outside.keep(kept)
        return {"records": kept.size, "former": former, "origin": key.name, "key": key.render(), "lost": proofs, "failures": failures}
    finally:
        appliance.close()
