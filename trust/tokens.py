"""The two credentials: `anl1` lease tokens, which their holder can narrow offline, and `nat1` principal tokens.

1. A lease token is ``anl1.<base64url of canonical JSON [root, caveats]>.<base64url of tail>``. The tail is an HMAC-SHA-256 chain: the
   root's key, then one step per caveat. Who holds a token can add a caveat; nobody can take one away without the key.
2. Caveats are structured, from a closed set (`trust.caveats`). One that is unknown makes the token worth nothing.
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
from collections.abc import Iterable
from dataclasses import dataclass, field

from trust.canonical import canonical
from trust.caveats import Caveat, check_caveats, spell
from trust.errors import Unauthenticated
from trust.model import LeaseId, TokenId
from trust.secret import Secret

LEASE_PREFIX = "anl1"
"""What every lease token starts with."""
MOUNT_PREFIX = "anm1"
"""What every mount credential starts with; see `trust.derived`."""
PRINCIPAL_PREFIX = "nat1"
"""What every principal token starts with."""
MAX_LENGTH = 4096
"""The longest lease token, in characters."""
MAX_CAVEATS = 8
"""The most narrowings in one token."""
_TAIL_BYTES = 32
_ROOT_DOMAIN = b"nas-lease-v1\0"
_CAVEAT_DOMAIN = b"nas-caveat-v1\0"
_DERIVE_DOMAIN = b"nas-derive-v1\0"


@dataclass(frozen=True, slots=True)
class LeaseToken:
    """A parsed lease token: well formed, not yet verified. `spelled` is the text of each caveat, where it is known already."""

    root: LeaseId
    caveats: tuple[Caveat, ...]
    tail: Secret
    spelled: tuple[str, ...] = field(default=(), compare=False)

    @property
    def id(self) -> LeaseId:
        """Return the id of the lease that the token is of."""
        return _child_id(self.root, self.spelled) if self.spelled else child_id(self.root, self.caveats)

    def is_under(self, key: Secret) -> bool:
        """Tell whether the tail is the one that the root's key gives these caveats."""
        return _extend(root_tail(key, self.root), self.spelled or spell(self.caveats)) == self.tail


def encode_lease_token(token: LeaseToken) -> str:
    """Return the text of a lease token. It may be beyond the limits: see `fits`."""
    return f"{encode_lease_head(token.root, token.caveats)}.{_encode(token.tail.reveal())}"


def encode_lease_head(root: LeaseId, caveats: tuple[Caveat, ...]) -> str:
    """Return a lease token without its tail: it says whose and how narrow it is, and proves nothing."""
    return f"{LEASE_PREFIX}.{_encode(_spell_head(root, spell(caveats)))}"


def _spell_head(root: str, spelled: Iterable[str]) -> bytes:
    return f"[{canonical(root)},[{','.join(spelled)}]]".encode()


def fits(token: LeaseToken) -> bool:
    """Tell whether a token is within the limits, so that it is understood where it is shown."""
    if len(token.caveats) > MAX_CAVEATS or len(encode_lease_token(token)) > MAX_LENGTH:
        return False
    try:
        check_caveats(token.caveats)
    except Unauthenticated:
        return False
    return True


def parse_lease_token(text: str) -> LeaseToken:
    """Return the parts of a lease token. Raises `Unauthenticated` for anything but the one spelling of a known form."""
    parts = text.split(".", 3)
    if len(text) > MAX_LENGTH or len(parts) != 3 or parts[0] != LEASE_PREFIX:
        raise Unauthenticated("lease token", "malformed")
    tail = _decode(parts[2])
    if len(tail) != _TAIL_BYTES:
        raise Unauthenticated("lease token", "malformed")
    root, caveats, spelled = _parse_head(_decode(parts[1]))
    return LeaseToken(LeaseId(root), caveats, Secret(tail), spelled)


def parse_lease_head(text: str) -> tuple[LeaseId, tuple[Caveat, ...]]:
    """Return root and caveats of a lease token without its tail. Raises `Unauthenticated` as `parse_lease_token`."""
    parts = text.split(".", 2)
    if len(text) > MAX_LENGTH or len(parts) != 2 or parts[0] != LEASE_PREFIX:
        raise Unauthenticated("lease token", "malformed")
    root, caveats, _ = _parse_head(_decode(parts[1]))
    return LeaseId(root), caveats


def _parse_head(head: bytes) -> tuple[str, tuple[Caveat, ...], tuple[str, ...]]:
    try:
        value = json.loads(head)
        if not isinstance(value, list) or len(value) != 2:
            raise Unauthenticated("lease token", "malformed")
        root, caveats = value
        if not isinstance(root, str) or not isinstance(caveats, list) or len(caveats) > MAX_CAVEATS:
            raise Unauthenticated("lease token", "malformed")
        spelled = spell(caveats)
        if _spell_head(root, spelled) != head:
            raise Unauthenticated("lease token", "malformed")
    except (ValueError, RecursionError) as error:
        raise Unauthenticated("lease token", "malformed") from error
    check_caveats(caveats)
    return root, tuple(caveats), spelled


def root_tail(key: Secret, root: LeaseId) -> Secret:
    """Return the tail of a token without caveats."""
    return Secret(hmac.digest(key.reveal(), _ROOT_DOMAIN + root.encode("utf-8", "surrogatepass"), "sha256"))


def extend_tail(tail: Secret, caveat: Caveat) -> Secret:
    """Return the tail after one more caveat; who holds a token can do this without the server."""
    return _extend(tail, spell((caveat,)))


def _extend(tail: Secret, spelled: Iterable[str]) -> Secret:
    value = tail.reveal()
    for text in spelled:
        value = hmac.digest(value, _CAVEAT_DOMAIN + text.encode(), "sha256")
    return Secret(value)


def chain_tail(key: Secret, root: LeaseId, caveats: tuple[Caveat, ...]) -> Secret:
    """Return the tail that a token with these caveats must have."""
    return _extend(root_tail(key, root), spell(caveats))


def genuine_token(key: Secret, root: LeaseId, caveats: tuple[Caveat, ...]) -> LeaseToken:
    """Return the one token that these caveats make of a root."""
    spelled = spell(caveats)
    return LeaseToken(root, caveats, _extend(root_tail(key, root), spelled), spelled)


def narrow_token(text: str, caveat: Caveat) -> str:
    """Return a lease token with one more caveat. Raises `Unauthenticated` for a malformed caveat or token, or one beyond the limits."""
    token = parse_lease_token(text)
    longer = LeaseToken(token.root, (*token.caveats, caveat), extend_tail(token.tail, caveat))
    check_caveats(longer.caveats)
    if not fits(longer):
        raise Unauthenticated("lease token", f"more than {MAX_CAVEATS} narrowings, or {MAX_LENGTH} characters; ask the server to narrow it")
    return encode_lease_token(longer)


def derive(tail: Secret, purpose: str) -> Secret:
    """Return the secret of one door (its purpose names it), from which neither the token nor another door's secret can be computed."""
    return Secret(hmac.digest(tail.reveal(), _DERIVE_DOMAIN + purpose.encode(), "sha256"))


def child_id(root: LeaseId, caveats: tuple[Caveat, ...]) -> LeaseId:
    """Return the id of the lease that a root's caveats make; the root's own without any."""
    return _child_id(root, spell(caveats))


def _child_id(root: LeaseId, spelled: tuple[str, ...]) -> LeaseId:
    if not spelled:
        return root
    caveats = f"[{','.join(spelled)}]"
    return LeaseId(f"{root}~{_encode(hashlib.sha256(caveats.encode()).digest()[:12])}")


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
