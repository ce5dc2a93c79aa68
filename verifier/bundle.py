"""A single record with the proof that a log has it: C2SP tlog-proof, whose ``extra`` line holds what the leaf is made of. Pure.

``extra`` is base64 of two lines: the hash before the record in hex, and the record's line. Neither is believed: together they have to make
the leaf that the proof leads from.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from verifier.notes import BadNote, Key, open_note
from verifier.records import BadRecord, Record, read_record
from verifier.tree import included

FIRST_LINE = "c2sp.org/tlog-proof@v1"


class BadProof(Exception):
    """The bundle does not prove that the log has the record."""


def verify_bundle(text: str, logs: Sequence[Key], witnesses: Sequence[Key], quorum: int) -> tuple[Record, str, int, list[str]]:
    """Return the record, the log's origin, how many records it had, and who cosigned. Raises `BadProof`."""
    head, separator, note = text.partition("\n\n")
    lines = head.split("\n")
    if not separator or lines[0] != FIRST_LINE or len(lines) < 3 or not lines[1].startswith("extra ") or not lines[2].startswith("index "):
        raise BadProof("not a proof of a record: expected its first line, extra, index, hashes, an empty line, a checkpoint")
    try:
        index = int(lines[2].removeprefix("index "))
        before, line = base64.b64decode(lines[1].removeprefix("extra "), validate=True).split(b"\n", 1)
        record = read_record(line, index + 1, bytes.fromhex(before.decode("ascii")))
        proof = [base64.b64decode(each, validate=True) for each in lines[3:]]
        checkpoint = open_note(note, (*logs, *witnesses))
    except (ValueError, BadRecord, BadNote) as error:
        raise BadProof(str(error)) from error
    if not any(key in logs and key.name == checkpoint.origin for key, _ in checkpoint.signers):
        raise BadProof("the checkpoint is not signed by a known key of the log")
    leaf = hashlib.sha256(b"\0" + record.hash).digest()
    if not included(leaf, index, checkpoint.size, proof, checkpoint.root):
        raise BadProof("the proof does not lead from the record to the root that was signed")
    cosigned = sorted({key.name for key, _ in checkpoint.signers if key in witnesses})
    if len(cosigned) < quorum:
        raise BadProof(f"cosigned by {len(cosigned)} of the known witnesses, and {quorum} are wanted")
    return record, checkpoint.origin, checkpoint.size, cosigned
