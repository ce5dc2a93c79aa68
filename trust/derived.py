"""What the holder of a secret shows where the secret itself must not go: a Basic password, an S3 key pair, a mount credential.

1. Everything of a lease is computed from its token: by the server, and by a holder who narrowed it offline and asks nobody. From what is
   shown neither the token nor another door's credential can be computed.
2. An S3 access key is 20 characters. ``ANLR`` and the letters of its id name a lease that stands for itself; ``ANLS`` and letters of a
   hash one that was narrowed, whose session token (the lease token without its tail) says how; ``ANT``, a letter for the key's epoch and
   the letters of its id name a principal's token.
3. The S3 secret of a principal's token hangs on a key that is not in the database: who has the database forges nothing.
4. A signing key is for one day, region and service (AWS Signature Version 4); the secret it comes from is not in it.
5. A mount credential is ``anm1.`` with the head of the lease token and a tail derived for mounts: good for mounting, and for nothing else.
6. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass

from trust.errors import Unauthenticated
from trust.model import LeaseId, TokenId
from trust.secret import Secret
from trust.tokens import LEASE_PREFIX, MOUNT_PREFIX, LeaseToken, derive, encode_lease_head, encode_lease_token, parse_lease_token

BASIC = "basic-v1"
"""The purpose of a Basic password."""
S3 = "s3-secret-v1"
"""The purpose of an S3 secret."""
MOUNT = "mount-v1"
"""The purpose of a mount credential."""
_OWN, _NARROWED, _TOKEN = "ANLR", "ANLS", "ANT"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_ID_LETTERS = 16
_TOKEN_DOMAIN = b"nas-token-s3-v1\0"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An S3 key pair; `session_token` is empty where the access key says everything."""

    access_key: str
    secret: Secret
    session_token: str = ""


class SigningKey:
    """Signs for one S3 secret, day, region and service."""

    __slots__ = ("_key",)

    def __init__(self, secret: Secret, day: str, region: str, service: str) -> None:
        key = b"AWS4" + secret.reveal()
        for part in (day, region, service, "aws4_request"):
            key = hmac.digest(key, part.encode("utf-8", "surrogatepass"), "sha256")
        self._key = Secret(key)

    def sign(self, text: bytes) -> str:
        """Return the signature of a string to sign, 64 hex digits."""
        return hmac.digest(self._key.reveal(), text, "sha256").hex()


def basic_of(token: LeaseToken) -> Secret:
    """Return the Basic password of a lease token."""
    return _spell(derive(token.tail, BASIC))


def key_pair_of(token: LeaseToken) -> KeyPair:
    """Return the S3 key pair of a lease token."""
    session = encode_lease_head(token.root, token.caveats) if token.caveats else ""
    return KeyPair(name_lease(token.id), _spell(derive(token.tail, S3)), session)


def derive_basic(text: str) -> tuple[str, str]:
    """Return user and password for HTTP Basic, computed from a lease token alone. Raises `Unauthenticated`."""
    token = parse_lease_token(text)
    user = encode_lease_head(token.root, token.caveats) if token.caveats else token.root
    return user, basic_of(token).reveal().decode()


def derive_key_pair(text: str) -> tuple[str, str, str]:
    """Return access key, secret and session token for S3, computed from a lease token alone. Raises `Unauthenticated`."""
    pair = key_pair_of(parse_lease_token(text))
    return pair.access_key, pair.secret.reveal().decode(), pair.session_token


def mount_tail_of(token: LeaseToken) -> Secret:
    """Return what a mount credential of a lease token ends with."""
    return derive(token.tail, MOUNT)


def derive_mount(text: str) -> str:
    """Return the mount credential of a lease token, computed from it alone. Raises `Unauthenticated`."""
    token = parse_lease_token(text)
    return MOUNT_PREFIX + encode_lease_token(LeaseToken(token.root, token.caveats, mount_tail_of(token))).removeprefix(LEASE_PREFIX)


def parse_mount(text: str) -> LeaseToken:
    """Return the parts of a mount credential; the tail is the derived one. Raises `Unauthenticated`."""
    if not text.startswith(f"{MOUNT_PREFIX}."):
        raise Unauthenticated("mount credential", "malformed")
    return parse_lease_token(LEASE_PREFIX + text.removeprefix(MOUNT_PREFIX))


def token_key_pair(key: Secret, epoch: int, token: TokenId) -> KeyPair:
    """Return the S3 key pair of a principal's token, under the key of an epoch."""
    secret = Secret(hmac.digest(key.reveal(), _TOKEN_DOMAIN + token.encode(), "sha256"))
    return KeyPair(f"{_TOKEN}{_LETTERS[epoch % len(_LETTERS)]}{token[1:].upper()}", _spell(secret))


def name_lease(lease: LeaseId) -> str:
    """Return the access key of a lease."""
    letters = lease[1:].upper()
    if len(letters) == _ID_LETTERS and set(letters) <= set(_LETTERS):
        return _OWN + letters
    return _NARROWED + base64.b32encode(hashlib.sha256(lease.encode()).digest()[:10]).decode()


def read_lease(access_key: str) -> LeaseId | None:
    """Return the lease that an access key names by its id, or None when it names a narrowed one. Raises `Unauthenticated`."""
    if access_key.startswith(_NARROWED):
        return None
    if len(access_key) != len(_OWN) + _ID_LETTERS or not access_key.startswith(_OWN):
        raise Unauthenticated("access key", "unknown")
    return LeaseId(f"l{access_key[len(_OWN) :].lower()}")


def read_token(access_key: str, newest: int) -> tuple[TokenId, int] | None:
    """Return the principal's token and the key epoch that an access key names, None when it names a lease.

    An epoch is named by its remainder: it is the last one up to `newest` that has it. Raises `Unauthenticated`.
    """
    if not access_key.startswith(_TOKEN):
        return None
    remainder = _LETTERS.find(access_key[len(_TOKEN) : len(_TOKEN) + 1])
    epoch = newest - (newest - remainder) % len(_LETTERS)
    if len(access_key) != len(_TOKEN) + 1 + _ID_LETTERS or remainder < 0 or epoch < 1:
        raise Unauthenticated("access key", "unknown")
    return TokenId(f"t{access_key[len(_TOKEN) + 1 :].lower()}"), epoch


def _spell(secret: Secret) -> Secret:
    """Return a secret in letters that every client can be given."""
    return Secret(base64.urlsafe_b64encode(secret.reveal()).rstrip(b"="))
