"""Signed notes, checkpoints and keys as a witness needs them (C2SP signed-note, tlog-checkpoint, tlog-cosignature).

1. Strict: what is not written exactly as specified is `Malformed`.
2. A log signs with Ed25519 (0x01); a witness cosigns with Ed25519 and the time (0x04).
3. Pure but for randomness, which is an argument.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ED25519 = 0x01
COSIGNATURE = 0x04
_MARK = "\N{EM DASH} "
_PRIVATE = "PRIVATE+KEY+"
_MOST_SIGNATURES = 64
_MOST_DIGITS = 18


class Malformed(Exception):
    """Not written as the specification says."""


class Untrusted(Exception):
    """Not signed by the log's key, or signed wrong."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key under a name."""

    name: str
    kind: int
    public: bytes

    @property
    def id(self) -> bytes:
        """Return the four bytes that name it in a signature."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.kind]) + self.public).digest()[:4]

    def render(self) -> str:
        """Return it as text."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(bytes([self.kind]) + self.public).decode()}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a log says of itself: the text that is signed, and the three things in it."""

    text: str
    origin: str
    size: int
    root: bytes
    signatures: tuple[tuple[str, bytes, bytes], ...]
    """Name, key id and signature of each line."""


class Cosigner:
    """The witness's own key."""

    def __init__(self, name: str, seed: bytes) -> None:
        """Cosign as `name`. Raises `Malformed` for a name that no key can have."""
        check_name(name)
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self._seed = seed
        self.key = Key(name, COSIGNATURE, self._private.public_key().public_bytes_raw())

    def cosign(self, text: str, now: int) -> str:
        """Return the signature line for a checkpoint's text at a time."""
        signature = self._private.sign(f"cosignature/v1\ntime {now}\n{text}".encode())
        payload = self.key.id + now.to_bytes(8, "big") + signature
        return f"{_MARK}{self.key.name} {base64.b64encode(payload).decode()}\n"

    def render_private(self) -> str:
        """Return the text that the key is kept as."""
        return f"{_PRIVATE}{self.key.name}+{self.key.id.hex()}+{base64.b64encode(bytes([COSIGNATURE]) + self._seed).decode()}\n"


def parse_private(text: str) -> Cosigner:
    """Return the key that `Cosigner.render_private` wrote. Raises `Malformed`."""
    parts = text.strip().removeprefix(_PRIVATE).split("+", 2)
    if len(parts) != 3 or not text.startswith(_PRIVATE):
        raise Malformed("not a private key of a witness")
    raw = _decode(parts[2])
    if len(raw) != 33 or raw[0] != COSIGNATURE:
        raise Malformed("not a private key of a witness")
    return Cosigner(parts[0], raw[1:])


def parse_key(text: str) -> Key:
    """Return the public key of a log. Raises `Malformed`."""
    parts = text.split("+", 2)
    if len(parts) != 3:
        raise Malformed("a key has a name, an id and the key, joined by '+'")
    check_name(parts[0])
    raw = _decode(parts[2])
    if len(raw) != 33 or raw[0] != ED25519:
        raise Malformed("not an Ed25519 key of a log")
    key = Key(parts[0], ED25519, raw[1:])
    if key.id.hex() != parts[1]:
        raise Malformed("the key's id is not its own: it was copied wrong")
    return key


def parse_checkpoint(note: str) -> Checkpoint:
    """Return a checkpoint, its signatures unverified. Raises `Malformed`."""
    body, separator, lines = note.rpartition("\n\n")
    if not separator or not lines.endswith("\n") or any(ord(letter) < 0x20 and letter != "\n" for letter in note):
        raise Malformed("no text with signatures under an empty line")
    text, found = body + "\n", lines[:-1].split("\n")
    if len(found) > _MOST_SIGNATURES:
        raise Malformed("too many signatures")
    said = text.split("\n")[:-1]
    if len(said) < 3 or not all(said):
        raise Malformed("a checkpoint has an origin, a size and a root")
    root = _decode(said[2])
    if len(root) != 32:
        raise Malformed("the root is no SHA-256")
    return Checkpoint(text, said[0], parse_size(said[1]), root, tuple(_parse_signature(line) for line in found))


def parse_size(text: str) -> int:
    """Return a size in decimal without leading zeroes. Raises `Malformed`."""
    if not (text.isascii() and text.isdigit()) or (text != "0" and text.startswith("0")) or len(text) > _MOST_DIGITS:
        raise Malformed("not a size")
    return int(text)


def check_signed(checkpoint: Checkpoint, key: Key) -> tuple[str, ...]:
    """Return the lines with which the log signed. Raises `Untrusted` when there is none, or one is wrong."""
    found = []
    for name, identity, signature in checkpoint.signatures:
        if (name, identity) != (key.name, key.id):
            continue
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(signature, checkpoint.text.encode())
        except InvalidSignature as error:
            raise Untrusted("the signature is wrong") from error
        found.append(f"{_MARK}{name} {base64.b64encode(identity + signature).decode()}\n")
    if not found:
        raise Untrusted("no signature of the log's key")
    return tuple(found)


def decode_hash(line: str) -> bytes:
    """Return the hash that a line of a proof holds. Raises `Malformed`."""
    raw = _decode(line)
    if len(raw) != 32:
        raise Malformed("a line of the proof is no SHA-256")
    return raw


def check_name(name: str) -> None:
    """Refuse what is no name of a key. Raises `Malformed`."""
    if not name or "+" in name or not name.isprintable() or any(letter.isspace() for letter in name):
        raise Malformed("a name is not empty and holds no space and no '+'")


def _parse_signature(line: str) -> tuple[str, bytes, bytes]:
    name, separator, encoded = line.removeprefix(_MARK).partition(" ")
    if not line.startswith(_MARK) or not separator:
        raise Malformed("a line under the text is no signature")
    check_name(name)
    raw = _decode(encoded)
    if len(raw) < 5:
        raise Malformed("a signature is too short")
    return name, raw[:4], raw[4:]


def _decode(encoded: str) -> bytes:
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed("not base64") from error
    if base64.b64encode(raw).decode() != encoded:
        raise Malformed("not base64")
    return raw
