"""What a witness answers: C2SP tlog-witness, request by request.

1. ``add-checkpoint``: 400 malformed, or an old size above the checkpoint's; 404 an origin it does not know; 403 not signed by the log; 409
   with the size it knows when the old size is another; 422 a proof that does not show that the checkpoint continues that one; 200 with its
   cosignature.
2. The checks against what it knows and the step from one checkpoint to the next are one transaction: see `witness.shelf`.
3. ``<origin hash>/checkpoint`` gives the last checkpoint it cosigned of a log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from witness.notes import Checkpoint, Cosigner, Malformed, Untrusted, check_signed, decode_hash, parse_checkpoint, parse_size
from witness.proofs import EMPTY, is_consistent
from witness.shelf import Head, Shelf

MOST_BYTES = 1 << 16
"""The longest request."""
_MOST_PROOF = 63
_PLAIN = "text/plain; charset=utf-8"
_SIZE = "text/x.tlog.size"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request."""

    status: HTTPStatus
    body: str
    content_type: str = _PLAIN


class _Refused(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)
        self.answer = answer


def add_checkpoint(content: bytes, shelf: Shelf, cosigner: Cosigner, now: int) -> Answer:
    """Return the answer to a submitted checkpoint, and keep it when it is cosigned."""
    try:
        old, proof, checkpoint = _parse(content)
    except (Malformed, UnicodeDecodeError) as error:
        return _refusal(HTTPStatus.BAD_REQUEST, str(error) if isinstance(error, Malformed) else "not UTF-8")
    key = shelf.key(checkpoint.origin)
    if key is None:
        return _refusal(HTTPStatus.NOT_FOUND, "an unknown log")
    try:
        signed = check_signed(checkpoint, key)
    except Untrusted as error:
        return _refusal(HTTPStatus.FORBIDDEN, str(error))
    if old > checkpoint.size:
        return _refusal(HTTPStatus.BAD_REQUEST, "the old size is above the checkpoint's")
    line = cosigner.cosign(checkpoint.text, now)
    head = Head(checkpoint.size, checkpoint.root, checkpoint.text + "\n" + "".join(signed) + line)

    def decide(last: Head | None) -> Head:
        _check(last, old, proof, checkpoint)
        return head

    try:
        shelf.advance(checkpoint.origin, decide)
    except _Refused as refused:
        return refused.answer
    return Answer(HTTPStatus.OK, line)


def last_checkpoint(origin_hash: str, shelf: Shelf) -> Answer:
    """Return the last checkpoint cosigned of the log whose origin has this SHA-256 in hex."""
    for key, head in shelf.logs():
        if head is not None and hashlib.sha256(key.name.encode()).hexdigest() == origin_hash:
            return Answer(HTTPStatus.OK, head.note)
    return _refusal(HTTPStatus.NOT_FOUND, "no checkpoint of such a log")


def _check(last: Head | None, old: int, proof: Sequence[bytes], checkpoint: Checkpoint) -> None:
    known = last.size if last else 0
    if old != known:
        raise _Refused(Answer(HTTPStatus.CONFLICT, f"{known}\n", _SIZE))
    if checkpoint.size == 0 and checkpoint.root != EMPTY:
        raise _Refused(_refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "the empty tree has another root"))
    if not is_consistent(old, checkpoint.size, last.root if last else EMPTY, checkpoint.root, proof):
        raise _Refused(_refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "the proof does not show that the checkpoint continues the last one"))


def _parse(content: bytes) -> tuple[int, list[bytes], Checkpoint]:
    head, separator, note = content.decode().partition("\n\n")
    lines = head.split("\n")
    if not separator or not lines[0].startswith("old "):
        raise Malformed("expected a line 'old SIZE', the proof, an empty line and a checkpoint")
    if len(lines) - 1 > _MOST_PROOF:
        raise Malformed("more than 63 lines of proof")
    return parse_size(lines[0].removeprefix("old ")), [decode_hash(line) for line in lines[1:]], parse_checkpoint(note)


def _refusal(status: HTTPStatus, why: str) -> Answer:
    return Answer(status, why + "\n")
