"""The proof that a single record is in the log, as a file that anybody checks offline: C2SP tlog-proof.

The ``extra`` line holds what the leaf is made of: the hash before the record in hex, and the record as a line of an export.
"""

from __future__ import annotations

import base64

from interfaces.port import Document
from trust.errors import Unknown
from trust.evidence import Evidence
from trust.lines import render_lines


def prove_record(evidence: Evidence, sequence: int, now: int) -> Document:
    """Return the proof of a record, signing a checkpoint where none has it yet. Raises `trust.errors.Unknown`."""
    row = evidence.find(sequence)
    try:
        kept = evidence.covering(sequence)
    except Unknown:
        kept = evidence.checkpoint(now)
    extra = base64.b64encode(f"{row[9].hex()}\n".encode() + render_lines([row])).decode()
    hashes = "".join(base64.b64encode(each).decode() + "\n" for each in evidence.prove_inclusion(sequence, kept.size))
    proof = f"c2sp.org/tlog-proof@v1\nextra {extra}\nindex {sequence - 1}\n{hashes}\n{kept.render()}"
    return {"sequence": sequence, "size": kept.size, "origin": evidence.verifier.name, "proof": proof}
