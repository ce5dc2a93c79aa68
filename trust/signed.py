"""Text with signatures under it: C2SP signed notes, the form in which checkpoints travel.

1. A signed text ends in a newline, then comes an empty line, then a line for each signature: em dash, key name, and key id with signature
   in base64. No control characters but the newline.
2. A signature of an unknown key is ignored. One of a known key that is wrong makes the whole text wrong.
3. What a signature signs depends on its kind, and the kinds are a table: Ed25519 over the text (0x01), the two cosignatures of a checkpoint
   with their time (0x04 Ed25519, 0x06 ML-DSA-44). A kind that this release does not know is an unknown key.
4. Pure but for the clock, which is an argument.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

from trust.errors import NoteInvalid
from trust.secret import Secret

MOST_SIGNATURES = 64
_MARK = "\N{EM DASH} "
_ID_BYTES = 4
_TIME_BYTES = 8
_PRIVATE = "PRIVATE+KEY+"


class SignatureKind(enum.IntEnum):
    """The assigned signature types that are known here."""

    ED25519 = 0x01
    COSIGNATURE = 0x04
    ML_DSA_44 = 0x06


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key under the name it signs as."""

    name: str
    kind: SignatureKind
    key: bytes

    @property
    def id(self) -> bytes:
        """Return the four bytes that name the key in a signature line."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.kind]) + self.key).digest()[:_ID_BYTES]

    def render(self) -> str:
        """Return the key as text: name, id and key, joined by ``+``."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(bytes([self.kind]) + self.key).decode()}"


@dataclass(frozen=True, slots=True)
class Signature:
    """One line under a text."""

    name: str
    id: bytes
    payload: bytes

    def render(self) -> str:
        """Return the line, with its newline."""
        return f"{_MARK}{self.name} {base64.b64encode(self.id + self.payload).decode()}\n"


@dataclass(frozen=True, slots=True)
class SignedText:
    """A text with the signatures under it."""

    text: str
    signatures: tuple[Signature, ...]

    def render(self) -> str:
        """Return the whole."""
        return self.text + "\n" + "".join(signature.render() for signature in self.signatures)


@dataclass(frozen=True, slots=True)
class Verified:
    """A signature that is right: by which key, and when it was made as far as it says so."""

    key: VerifierKey
    signature: Signature
    time: int | None


class SigningKey:
    """An Ed25519 key that signs texts under a name."""

    def __init__(self, name: str, seed: Secret) -> None:
        """Sign as `name` with the key that 32 bytes stand for. Raises `NoteInvalid`."""
        _check_name(name)
        self._private = Ed25519PrivateKey.from_private_bytes(seed.reveal())
        self.verifier = VerifierKey(name, SignatureKind.ED25519, self._private.public_key().public_bytes_raw())

    def sign(self, text: str) -> SignedText:
        """Return a text with this key's signature under it."""
        return SignedText(text, (Signature(self.verifier.name, self.verifier.id, self._private.sign(text.encode())),))


def render_private(name: str, seed: Secret) -> Secret:
    """Return the text that a private key is kept as."""
    verifier = SigningKey(name, seed).verifier
    return Secret(f"{_PRIVATE}{name}+{verifier.id.hex()}+{base64.b64encode(bytes([verifier.kind]) + seed.reveal()).decode()}".encode())


def parse_private(content: bytes) -> SigningKey:
    """Return the key that `render_private` wrote. Raises `NoteInvalid`, which tells nothing of the content."""
    try:
        text = content.decode("ascii").strip()
        rest, separator, encoded = text.removeprefix(_PRIVATE).partition("+")[2].partition("+")
        name, raw = text.removeprefix(_PRIVATE).partition("+")[0], base64.b64decode(encoded, validate=True)
        key = SigningKey(name, Secret(raw[1:]))
        sound = text.startswith(_PRIVATE) and separator and raw[0] == SignatureKind.ED25519 and rest == key.verifier.id.hex()
    except (ValueError, IndexError):
        sound = False
    if not sound:
        raise NoteInvalid("log key", "not a private key of a log")
    return key


def parse_verifier(text: str) -> VerifierKey:
    """Return the public key that a text stands for. Raises `NoteInvalid`."""
    parts = text.split("+", 2)
    if len(parts) != 3:
        raise NoteInvalid(text, "no verifier key: expected name, id and key, joined by '+'")
    name, identity, encoded = parts
    _check_name(name)
    raw = _decode(encoded, "verifier key")
    try:
        kind = SignatureKind(raw[0])
        _KEY_SHAPES[kind](raw[1:])
    except (ValueError, IndexError) as error:
        raise NoteInvalid(text, "a verifier key of an unknown kind or length") from error
    key = VerifierKey(name, kind, raw[1:])
    if key.id.hex() != identity:
        raise NoteInvalid(text, "a verifier key whose id is not its own: it was copied wrong")
    return key


def parse_signed(content: str) -> SignedText:
    """Return a signed text, its signatures unverified. Raises `NoteInvalid`."""
    text, separator, lines = content.rpartition("\n\n")
    if not separator or not lines.endswith("\n") or any(ord(letter) < 0x20 and letter != "\n" for letter in content):
        raise NoteInvalid("signed text", "no text with signature lines under an empty line")
    found = lines[:-1].split("\n")
    if len(found) > MOST_SIGNATURES:
        raise NoteInvalid("signed text", f"more than {MOST_SIGNATURES} signatures")
    return SignedText(text + "\n", tuple(parse_signature(line) for line in found))


def parse_signature(line: str) -> Signature:
    """Return the signature a line (without its newline) stands for. Raises `NoteInvalid`."""
    name, separator, encoded = line.removeprefix(_MARK).partition(" ")
    if not line.startswith(_MARK) or not separator:
        raise NoteInvalid("signed text", "a line under the empty line that is no signature")
    _check_name(name)
    raw = _decode(encoded, "signature")
    if len(raw) <= _ID_BYTES:
        raise NoteInvalid("signed text", "a signature that is too short")
    return Signature(name, raw[:_ID_BYTES], raw[_ID_BYTES:])


def verify_signed(signed: SignedText, keys: Iterable[VerifierKey]) -> list[Verified]:
    """Return the signatures by known keys. Raises `NoteInvalid` when one of a known key is wrong."""
    known = {(key.name, key.id): key for key in keys}
    found = []
    for signature in signed.signatures:
        key = known.get((signature.name, signature.id))
        if key is None:
            continue
        try:
            found.append(Verified(key, signature, _CHECKS[key.kind](key, signed.text, signature.payload)))
        except (InvalidSignature, ValueError) as error:
            raise NoteInvalid("signed text", f"the signature of {key.name} is wrong") from error
    return found


def _check_ed25519(key: VerifierKey, text: str, payload: bytes) -> None:
    Ed25519PublicKey.from_public_bytes(key.key).verify(payload, text.encode())


def _check_cosignature(key: VerifierKey, text: str, payload: bytes) -> int:
    time = int.from_bytes(payload[:_TIME_BYTES], "big")
    Ed25519PublicKey.from_public_bytes(key.key).verify(payload[_TIME_BYTES:], f"cosignature/v1\ntime {time}\n{text}".encode())
    return time


def _check_ml_dsa_44(key: VerifierKey, text: str, payload: bytes) -> int:
    origin, size, root = text.split("\n")[:3]
    stamp = payload[:_TIME_BYTES]
    message = b"subtree/v1\n\0" + _counted(key.name) + stamp + _counted(origin) + bytes(8) + int(size).to_bytes(8, "big")
    MLDSA44PublicKey.from_public_bytes(key.key).verify(payload[_TIME_BYTES:], message + base64.b64decode(root, validate=True))
    return int.from_bytes(stamp, "big")


_CHECKS: Mapping[SignatureKind, Callable[[VerifierKey, str, bytes], int | None]] = {
    SignatureKind.ED25519: _check_ed25519,
    SignatureKind.COSIGNATURE: _check_cosignature,
    SignatureKind.ML_DSA_44: _check_ml_dsa_44,
}
_KEY_SHAPES: Mapping[SignatureKind, Callable[[bytes], object]] = {
    SignatureKind.ED25519: Ed25519PublicKey.from_public_bytes,
    SignatureKind.COSIGNATURE: Ed25519PublicKey.from_public_bytes,
    SignatureKind.ML_DSA_44: MLDSA44PublicKey.from_public_bytes,
}


def _counted(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(1, "big") + raw


def _check_name(name: str) -> None:
    if not name or "+" in name or not name.isprintable() or any(letter.isspace() for letter in name):
        raise NoteInvalid(repr(name), "no name for a key: empty, or with a space, '+' or control character")


def _decode(encoded: str, what: str) -> bytes:
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoteInvalid(what, "not base64") from error
    if base64.b64encode(raw).decode() != encoded:
        raise NoteInvalid(what, "not base64 in its one spelling")
    return raw
