"""The two credentials: `anl1` lease tokens, which their holder can narrow offline, and `nat1` principal tokens.

1. A lease token is ``anl1.<base64url of canonical JSON [root, caveats]>.<base64url of tail>``. The tail is an HMAC-SHA-256 chain: the
   root's key, then one step per caveat. Who holds a token can add a caveat; nobody can take one away without the key.
2. Caveats are structured, from a closed set. One that is unknown, or known but not enforced here, makes the token worth nothing: a
   restriction that is not understood is never ignored.
3. A token has one spelling. Anything else (spacing, repeated keys, loose base64) is refused before it is looked at.
4. At most `MAX_CAVEATS` caveats and `MAX_LENGTH` characters: verification costs the same few hashes for everybody.
5. Each use of a key names its purpose, so that a value made for one is worthless for another. A door that must show less than the token
   (an S3 secret, a Basic password) uses `derive`.
6. Pure: keys, time and randomness are arguments. Errors never quote a token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trust.canonical import canonical
from trust.errors import PatternInvalid, Unauthenticated
from trust.model import LEASABLE, BudgetKind, LeaseId, TokenId
from trust.policy.patterns import parse_pattern
from trust.secret import Secret

LEASE_PREFIX = "anl1"
"""What every lease token starts with."""
PRINCIPAL_PREFIX = "nat1"
"""What every principal token starts with."""
MAX_LENGTH = 4096
"""The longest lease token, in characters."""
MAX_CAVEATS = 8
"""The most narrowings in one token."""
MAX_PURPOSE = 200
"""The longest purpose, in characters."""
SUPPORTED = frozenset({"p", "a", "exp", "nbf", "bud", "pur"})
"""Paths, actions, end, beginning, budgets, purpose: the caveats that are enforced."""
RESERVED = frozenset({"who", "dst", "aud", "cnf", "lab"})
"""Caveats that have a meaning which is not enforced here; a token that carries one is refused."""
_LARGEST = 1 << 53
_TAIL_BYTES = 32
_ROOT_DOMAIN = b"nas-lease-v1\0"
_CAVEAT_DOMAIN = b"nas-caveat-v1\0"
_DERIVE_DOMAIN = b"nas-derive-v1\0"

Caveat = Mapping[str, Any]
"""One narrowing, by the letters of `SUPPORTED`."""


@dataclass(frozen=True, slots=True)
class LeaseToken:
    """A parsed lease token: well formed, not yet verified."""

    root: LeaseId
    caveats: tuple[Caveat, ...]
    tail: Secret


def encode_lease_token(token: LeaseToken) -> str:
    """Return the text of a lease token. It may be longer than `MAX_LENGTH`: see `fits`."""
    return f"{encode_lease_head(token.root, token.caveats)}.{_encode(token.tail.reveal())}"


def encode_lease_head(root: LeaseId, caveats: tuple[Caveat, ...]) -> str:
    """Return a lease token without its tail: it says whose and how narrow it is, and proves nothing."""
    return f"{LEASE_PREFIX}.{_encode(canonical([root, list(caveats)]).encode())}"


def fits(token: LeaseToken) -> bool:
    """Tell whether a token is within the limits."""
    return len(token.caveats) <= MAX_CAVEATS and len(encode_lease_token(token)) <= MAX_LENGTH


def parse_lease_token(text: str) -> LeaseToken:
    """Return the parts of a lease token. Raises `Unauthenticated` for anything but the one spelling of a known form."""
    parts = text.split(".")
    if len(text) > MAX_LENGTH or len(parts) != 3 or parts[0] != LEASE_PREFIX:
        raise Unauthenticated("lease token", "malformed")
    head, tail = _decode(parts[1]), _decode(parts[2])
    root, caveats = _parse_head(head)
    if len(tail) != _TAIL_BYTES:
        raise Unauthenticated("lease token", "malformed")
    return LeaseToken(LeaseId(root), caveats, Secret(tail))


def parse_lease_head(text: str) -> tuple[LeaseId, tuple[Caveat, ...]]:
    """Return root and caveats of a lease token without its tail. Raises `Unauthenticated` as `parse_lease_token`."""
    parts = text.split(".")
    if len(text) > MAX_LENGTH or len(parts) != 2 or parts[0] != LEASE_PREFIX:
        raise Unauthenticated("lease token", "malformed")
    root, caveats = _parse_head(_decode(parts[1]))
    return LeaseId(root), caveats


def _parse_head(head: bytes) -> tuple[str, tuple[Caveat, ...]]:
    try:
        value = json.loads(head)
        respelled = canonical(value).encode()
    except (ValueError, RecursionError) as error:
        raise Unauthenticated("lease token", "malformed") from error
    if respelled != head or not isinstance(value, list) or len(value) != 2:
        raise Unauthenticated("lease token", "malformed")
    root, caveats = value
    if not isinstance(root, str) or not isinstance(caveats, list) or len(caveats) > MAX_CAVEATS:
        raise Unauthenticated("lease token", "malformed")
    for caveat in caveats:
        check_caveat(caveat)
    return root, tuple(caveats)


def check_caveat(caveat: object) -> None:
    """Refuse a caveat that is not wholly understood. Raises `Unauthenticated`."""
    if not isinstance(caveat, dict) or not caveat:
        raise Unauthenticated("lease token", "malformed caveat")
    for letter, value in caveat.items():
        if letter in RESERVED:
            raise Unauthenticated("lease token", f"the caveat '{letter}' is not supported")
        if letter not in SUPPORTED or not _CHECKS[letter](value):
            raise Unauthenticated("lease token", "a caveat is not understood")


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_paths(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and _is_pattern(each) for each in value)


def _is_pattern(text: str) -> bool:
    try:
        parse_pattern(text)
    except PatternInvalid:
        return False
    return True


def _is_actions(value: object) -> bool:
    known = {action.value for action in LEASABLE}
    return isinstance(value, list) and all(isinstance(each, str) and each in known for each in value)


def _is_budgets(value: object) -> bool:
    known = {kind.value for kind in BudgetKind}
    return isinstance(value, dict) and bool(value) and all(kind in known and _is_number(amount) for kind, amount in value.items())


def _is_purpose(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_PURPOSE


_CHECKS = {"p": _is_paths, "a": _is_actions, "exp": _is_number, "nbf": _is_number, "bud": _is_budgets, "pur": _is_purpose}


def root_tail(key: Secret, root: LeaseId) -> Secret:
    """Return the tail of a token without caveats."""
    return Secret(hmac.digest(key.reveal(), _ROOT_DOMAIN + root.encode("utf-8", "surrogatepass"), "sha256"))


def extend_tail(tail: Secret, caveat: Caveat) -> Secret:
    """Return the tail after one more caveat; who holds a token can do this without the server."""
    return Secret(hmac.digest(tail.reveal(), _CAVEAT_DOMAIN + canonical(caveat).encode(), "sha256"))


def chain_tail(key: Secret, root: LeaseId, caveats: tuple[Caveat, ...]) -> Secret:
    """Return the tail that a token with these caveats must have."""
    tail = root_tail(key, root)
    for caveat in caveats:
        tail = extend_tail(tail, caveat)
    return tail


def narrow_token(text: str, caveat: Caveat) -> str:
    """Return a lease token with one more caveat. Raises `Unauthenticated` for a malformed token or caveat."""
    token = parse_lease_token(text)
    check_caveat(caveat)
    return encode_lease_token(LeaseToken(token.root, (*token.caveats, caveat), extend_tail(token.tail, caveat)))


def derive(tail: Secret, purpose: str) -> Secret:
    """Return the secret of one door (its purpose names it), from which neither the token nor another door's secret can be computed."""
    return Secret(hmac.digest(tail.reveal(), _DERIVE_DOMAIN + purpose.encode(), "sha256"))


def child_id(root: LeaseId, caveats: tuple[Caveat, ...]) -> LeaseId:
    """Return the id of the lease that a root's caveats make; the root's own without any."""
    if not caveats:
        return root
    return LeaseId(f"{root}~{_encode(hashlib.sha256(canonical(list(caveats)).encode()).digest()[:12])}")


def encode_principal_token(token: TokenId, secret: Secret) -> str:
    """Return the text of a principal token."""
    return f"{PRINCIPAL_PREFIX}.{token}.{_encode(secret.reveal())}"


def parse_principal_token(text: str) -> tuple[TokenId, Secret]:
    """Return id and secret of a principal token. Raises `Unauthenticated` for anything malformed."""
    parts = text.split(".")
    if len(text) > MAX_LENGTH or len(parts) != 3 or parts[0] != PRINCIPAL_PREFIX:
        raise Unauthenticated("token", "malformed")
    return TokenId(parts[1]), Secret(_decode(parts[2]))


def hash_secret(secret: Secret) -> Secret:
    """Return what is kept of a principal token's secret: 256 random bits need no slow hash."""
    return Secret(hashlib.sha256(b"nas-token-v1\0" + secret.reveal()).digest())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """Return the bytes of unpadded base64url in its one spelling."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise Unauthenticated("token", "malformed") from error
    if _encode(data) != text:
        raise Unauthenticated("token", "malformed")
    return data
