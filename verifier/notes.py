"""Signed notes: checkpoints of logs and cosignatures of witnesses (C2SP signed-note, tlog-checkpoint, tlog-cosignature).

1. Signatures of keys that nobody named are passed over; a wrong one of a known key is an error.
2. Kinds of signatures are a table: Ed25519 (0x01), and the cosignatures with a time, Ed25519 (0x04) and ML-DSA-44 (0x06).
3. Pure.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

ED25519, COSIGNATURE, ML_DSA_44 = 0x01, 0x04, 0x06
_MARK = "\N{EM DASH} "


class BadNote(Exception):
    """Not a signed note, not a checkpoint, not a key, or signed wrong."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key under its name."""

    name: str
    kind: int
    public: bytes

    @property
    def id(self) -> bytes:
        """Return its four bytes in a signature line."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.kind]) + self.public).digest()[:4]

    @property
    def text(self) -> str:
        """Return it as it is written."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(bytes([self.kind]) + self.public).decode()}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a note says of a log, and who signed it, with the time where a signature has one."""

    origin: str
    size: int
    root: bytes
    signers: tuple[tuple[Key, int | None], ...]


def read_key(text: str) -> Key:
    """Return a key. Raises `BadNote`."""
    parts = text.strip().split("+", 2)
    if len(parts) != 3 or not parts[0]:
        raise BadNote(f"{text!r} is no key: a name, an id and the key, joined by '+'")
    raw = _decode(parts[2])
    if not raw or raw[0] not in _CHECKS:
        raise BadNote(f"{parts[0]}: a key of an unknown kind")
    key = Key(parts[0], raw[0], raw[1:])
    if key.id.hex() != parts[1]:
        raise BadNote(f"{parts[0]}: the key's id is not its own; it was copied wrong")
    return key


def open_note(note: str, keys: Iterable[Key]) -> Checkpoint:
    """Return the checkpoint in a note with those of `keys` that signed it. Raises `BadNote`."""
    body, separator, lines = note.rpartition("\n\n")
    if not separator or not lines.endswith("\n"):
        raise BadNote("no signatures under an empty line")
    text = body + "\n"
    said = text.split("\n")[:-1]
    if len(said) < 3 or not all(said) or not (said[1].isascii() and said[1].isdigit()) or str(int(said[1])) != said[1]:
        raise BadNote("no checkpoint: an origin, a size and a root")
    root = _decode(said[2])
    if len(root) != 32:
        raise BadNote("the root is no SHA-256")
    known = {(key.name, key.id): key for key in keys}
    signers = []
    for line in lines[:-1].split("\n"):
        name, _, encoded = line.removeprefix(_MARK).partition(" ")
        raw = _decode(encoded)
        key = known.get((name, raw[:4])) if line.startswith(_MARK) else None
        if key is not None:
            signers.append((key, _check(key, text, raw[4:])))
    return Checkpoint(said[0], int(said[1]), root, tuple(signers))


def _check(key: Key, text: str, payload: bytes) -> int | None:
    try:
        return _CHECKS[key.kind](key, text, payload)
    except (InvalidSignature, ValueError) as error:
        raise BadNote(f"the signature of {key.name} is wrong") from error


def _by_log(key: Key, text: str, payload: bytes) -> None:
    Ed25519PublicKey.from_public_bytes(key.public).verify(payload, text.encode())


def _by_witness(key: Key, text: str, payload: bytes) -> int:
    time = int.from_bytes(payload[:8], "big")
    Ed25519PublicKey.from_public_bytes(key.public).verify(payload[8:], f"cosignature/v1\ntime {time}\n{text}".encode())
    return time


def _by_lasting_witness(key: Key, text: str, payload: bytes) -> int:
    origin, size, root = text.split("\n")[:3]
    name, log = key.name.encode(), origin.encode()
    message = b"subtree/v1\n\0" + bytes([len(name)]) + name + payload[:8] + bytes([len(log)]) + log
    message += bytes(8) + int(size).to_bytes(8, "big") + base64.b64decode(root)
    MLDSA44PublicKey.from_public_bytes(key.public).verify(payload[8:], message)
    return int.from_bytes(payload[:8], "big")


_CHECKS: dict[int, Callable[[Key, str, bytes], int | None]] = {
    ED25519: _by_log,
    COSIGNATURE: _by_witness,
    ML_DSA_44: _by_lasting_witness,
}


def _decode(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise BadNote("not base64") from error
