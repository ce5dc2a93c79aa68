"""Checkpoints: signed heads of the record, in the form of C2SP tlog-checkpoint.

1. A checkpoint says: the log of this origin had so many records, and this was the root of the tree over them. The log signs only heads that
   are on stable storage, and never two that do not agree.
2. `Lines` of a witness are kept beside it; whoever has the public keys can check all of them without asking anybody.
3. `judge` compares a checkpoint that was kept outside with what is here. Only such a comparison finds a record that was cut off, or an old
   copy that was put back.
4. Pure.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from trust.errors import NoteInvalid
from trust.signed import SignedText, SigningKey, VerifierKey, parse_signed, verify_signed

ROOT_BYTES = 32


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A head of a log: its origin, how many records it had, and the root of the tree over them."""

    origin: str
    size: int
    root: bytes

    def render(self) -> str:
        """Return the text that is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint that was signed: of how many records, when, as signed text, and with the signature lines of witnesses by their names."""

    size: int
    time: int
    note: str
    cosignatures: dict[str, str]

    def render(self) -> str:
        """Return the note with every cosignature under it."""
        return self.note + "".join(self.cosignatures[name] for name in sorted(self.cosignatures))


def sign_checkpoint(checkpoint: Checkpoint, key: SigningKey) -> str:
    """Return a checkpoint with the log's signature."""
    return key.sign(checkpoint.render()).render()


def read_checkpoint(signed: SignedText) -> Checkpoint:
    """Return what a signed text says. Raises `NoteInvalid` when it is no checkpoint."""
    lines = signed.text.split("\n")
    if len(lines) < 4 or not lines[0] or not all(lines[:-1]):
        raise NoteInvalid("checkpoint", "fewer than three lines, or an empty one")
    size = lines[1]
    if not (size.isascii() and size.isdigit()) or (size != "0" and size.startswith("0")) or len(size) > 18:
        raise NoteInvalid("checkpoint", "the second line is no size")
    try:
        root = base64.b64decode(lines[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoteInvalid("checkpoint", "the third line is no hash") from error
    if len(root) != ROOT_BYTES:
        raise NoteInvalid("checkpoint", "the third line is no hash")
    return Checkpoint(lines[0], int(size), root)


def open_checkpoint(note: str, key: VerifierKey) -> Checkpoint:
    """Return what a checkpoint says that this log signed. Raises `NoteInvalid` when it did not."""
    signed = parse_signed(note)
    found = read_checkpoint(signed)
    if not verify_signed(signed, [key]):
        raise NoteInvalid("checkpoint", f"not signed by {key.name}")
    if found.origin != key.name:
        raise NoteInvalid("checkpoint", f"of another log: {found.origin}")
    return found


def judge(outside: Checkpoint, size: int, root_at: bytes | None, where: str) -> str:
    """Return what a checkpoint kept at `where` proves against a record of `size`, empty when they agree.

    `root_at` is the root here at the checkpoint's size, None when this record does not reach it.
    """
    if root_at is None:
        return (
            f"{where} holds a signed checkpoint of {outside.size} records, and there are {size} here: "
            f"records {size + 1} to {outside.size} were lost, or an old copy was put back"
        )
    if root_at != outside.root:
        return f"{where} holds a signed checkpoint of {outside.size} records that are not the ones here: the record was rewritten"
    return ""
