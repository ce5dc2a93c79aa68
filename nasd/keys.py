"""SSH keys: public keys that stand for a principal or for a run's lease.

1. Only public halves are here. A key is registered once, for one principal or one lease; it falls with the lease.
2. What an SSH server gets for a key is one line that allows one forced command and nothing else: no terminal, no forwarding, no file.
3. Keys that are too weak to tell anybody apart (DSA, RSA below 2,048 bits) are refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import shlex
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from interfaces.faults import Fault, Kind
from trust.errors import Taken, Unknown
from trust.leases import lease_state
from trust.model import LeaseId, LeaseState
from trust.service import Trust

_KIND = "ssh-key"
_KINDS = frozenset(
    {
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)
_SHORTEST_MODULUS = 256


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key as OpenSSH writes it, without its comment."""

    kind: str
    blob: bytes

    @property
    def text(self) -> str:
        """Return the key as one line of a file has it."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    @property
    def id(self) -> str:
        """Return the name that this appliance has for the key."""
        return "k" + base64.b32encode(hashlib.sha256(self.blob).digest()[:10]).decode().lower()

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint that OpenSSH prints."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Registered:
    """A key and whom it speaks for: a lease, or (with no lease) a principal."""

    id: str
    key: str
    fingerprint: str
    principal: str
    lease: str
    label: str
    created: int


def parse_key(text: str) -> PublicKey:
    """Return the key of a line of ``id_*.pub``. Raises `Kind.INVALID` for what is none, or none to trust."""
    words = text.split()
    try:
        kind, blob = words[0], binascii.a2b_base64(words[1].encode("ascii"), strict_mode=True)
        fields = _read_fields(blob)
    except (IndexError, ValueError, struct.error):
        raise Fault(Kind.INVALID, "that is no SSH public key", hint="paste the line of a file such as ~/.ssh/id_ed25519.pub") from None
    if kind not in _KINDS or not fields or fields[0] != kind.encode():
        raise Fault(Kind.INVALID, f"keys of kind {kind[:40]!r} are not taken", hint="make one: ssh-keygen -t ed25519")
    if kind == "ssh-rsa" and (len(fields) != 3 or len(fields[2].lstrip(b"\0")) < _SHORTEST_MODULUS):
        raise Fault(Kind.INVALID, "an RSA key below 2048 bits is not taken", hint="make one: ssh-keygen -t ed25519")
    return PublicKey(kind, blob)


def _read_fields(blob: bytes) -> list[bytes]:
    fields, position = [], 0
    while position < len(blob):
        (length,) = struct.unpack_from(">I", blob, position)
        position += 4
        if position + length > len(blob):
            raise ValueError("a field is cut short")
        fields.append(blob[position : position + length])
        position += length
    return fields


def authorized_line(registered: Registered, program: Path, home: Path) -> str:
    """Return the line of ``authorized_keys`` that lets a key in, to `program` and nothing else."""
    command = shlex.join([str(program), "ssh", "--home", str(home), registered.id])
    escaped = command.replace("\\", "\\\\").replace('"', '\\"')
    return f'restrict,command="{escaped}" {registered.key} {registered.id}'


class Keys:
    """The registered keys. Any thread may call."""

    def __init__(self, trust: Trust) -> None:
        """Keep them among the documents of trust."""
        self._trust = trust

    def add(self, key: PublicKey, *, principal: str, lease: str, label: str, now: int) -> Registered:
        """Register a key. Raises `Kind.EXISTS`."""
        registered = Registered(key.id, key.text, key.fingerprint, principal, lease, label, now)
        try:
            self._trust.put_document(_KIND, key.id, asdict(registered), 0)
        except Taken:
            raise Fault(Kind.EXISTS, f"the key {key.id} is registered already", hint="`nas key list` shows for whom") from None
        return registered

    def find(self, id: str) -> Registered:
        """Return a key. Raises `Kind.NOT_FOUND`."""
        try:
            return _registered(self._trust.document(_KIND, id).body)
        except Unknown:
            raise Fault(Kind.NOT_FOUND, f"{id}: no such key", hint="`nas key list` shows them") from None

    def all(self) -> Sequence[Registered]:
        """Return every key, ordered by its id."""
        return [_registered(document.body) for document in self._trust.documents(_KIND)]

    def remove(self, id: str) -> None:
        """Forget a key. Repeats do nothing."""
        try:
            self._trust.remove_document(_KIND, id, self._trust.document(_KIND, id).version)
        except Unknown:
            return

    def live(self, now: int) -> Sequence[Registered]:
        """Return the keys that let somebody in at this time."""
        return [each for each in self.all() if self._is_live(each, now)]

    def _is_live(self, registered: Registered, now: int) -> bool:
        if self._trust.principal(registered.principal).disabled:
            return False
        return not registered.lease or lease_state(self._trust.lease(LeaseId(registered.lease)), now) is LeaseState.LIVE


def _registered(body: Mapping[str, Any]) -> Registered:
    return Registered(**body)
