"""Secrets in, holders out: making tokens and leases, and recognising them.

1. A principal's token is a row with the hash of 256 random bits; a lease's secret is computed from its chain and kept nowhere.
2. A lease token that was narrowed offline becomes rows, one for each narrowing, when it is first seen. From then on each can be listed,
   revoked and charged. What is revoked takes everything below it along, seen or not.
3. A lease narrowed here gets the secret that its holder could have computed offline, while the token stays within its limits; beyond them
   it gets a secret of its own. The same narrowing twice is the same lease. A lease's depth says how many generations may hang below it.
4. A secret that is unknown, revoked or wrong is one answer.
5. What a door derives from a secret (`trust.derived`) is recognised by computing it again. Rows of unseen narrowings are made only for who
   proved the secret: anybody can write down caveats.
6. The engine's transaction makes checks and rows one step.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from trust.cache import FOREVER
from trust.caveats import Caveat
from trust.contract import Engine
from trust.derived import KeyPair, basic_of, key_pair_of, mount_tail_of, parse_mount, read_lease, read_token, token_key_pair
from trust.errors import Disabled, KeyMissing, LeaseRevoked, ScopeInvalid, Unauthenticated, Unknown, Widened
from trust.keys import Keys
from trust.leases import (
    MAX_ACTORS,
    NARROWING_EFFORT,
    Chain,
    apply_caveat,
    caveat_between,
    check_scope,
    narrow_scope,
    require_divisible,
    require_usable,
)
from trust.model import Lease, LeaseId, Principal, PrincipalName, RunId, Scope, Token, TokenId
from trust.policy.covering import Effort
from trust.presented import digest_of
from trust.secret import Secret
from trust.tokens import (
    LEASE_PREFIX,
    MOUNT_PREFIX,
    PRINCIPAL_PREFIX,
    LeaseToken,
    child_id,
    encode_lease_token,
    encode_principal_token,
    fits,
    genuine_token,
    hash_secret,
    parse_lease_head,
    parse_lease_token,
    parse_principal_token,
)

_NARROWED_KEYS = "s3-key"
MAX_NARROWINGS = 4096
"""The most leases that hang on one root: a holder cannot fill the disk by narrowing."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a secret belongs to, and the first moment at which the clock ends that."""

    principal: Principal
    token: TokenId | None = None
    lease: Lease | None = None
    until: int = FOREVER


@dataclass(frozen=True, slots=True)
class Claim:
    """The secret that who presents an S3 access key must have: of a principal's token, or of a lease."""

    secret: Secret
    digest: bytes
    token: TokenId | None = None
    lease: LeaseToken | None = None


class Credentials:
    """Makes secrets and recognises them."""

    def __init__(self, engine: Engine, keys: Keys, entropy: Callable[[int], bytes]) -> None:
        self._engine = engine
        self._keys = keys
        self._entropy = entropy

    def issue_token(self, principal: str, label: str, expires: int | None, now: int) -> tuple[Token, str]:
        """Make a token and return it with its secret, this once. Raises `Unknown`, `Disabled`."""
        owner = self._active(principal)
        token, secret = Token(TokenId(self.make_id("t")), owner.name, label, now, expires), Secret(self._entropy(32))
        self._engine.tokens.add(token, hash_secret(secret))
        return token, encode_principal_token(token.id, secret)

    def recognise(self, text: str, now: int) -> Holder:
        """Return whom a secret (of a lease, of a principal, or a mount credential) belongs to.

        Raises `Unauthenticated`, `LeaseExpired`, `LeaseRevoked`, `Disabled`, and `Widened` for a lease that may not hang below its parent.
        """
        if text.startswith(f"{MOUNT_PREFIX}."):
            return self._recognise_mount(text, now)
        return self._recognise_lease(text, now) if text.startswith(f"{LEASE_PREFIX}.") else self._recognise_token(text, now)

    def recognise_basic(self, user: str, password: str, now: int) -> Holder:
        """Return whom HTTP Basic credentials belong to. Raises as `recognise`.

        The user is a lease id (or, of a lease that was narrowed offline, its token without the tail) with its derived password; or a lease
        id or a principal's name with a whole secret of theirs.
        """
        if password.startswith((f"{LEASE_PREFIX}.", f"{PRINCIPAL_PREFIX}.")):
            holder = self.recognise(password, now)
            owner = holder.principal.name if holder.lease is None else holder.lease.id
            if user != owner:
                raise Unauthenticated("user", "not whom the secret belongs to")
            return holder
        wanted = self._expect(*(parse_lease_head(user) if user.startswith(f"{LEASE_PREFIX}.") else self._chain(LeaseId(user))))
        if basic_of(wanted) != Secret(password.encode("utf-8", "surrogatepass")):
            raise Unauthenticated("password", "wrong")
        return self._admit(wanted, now)

    def claim(self, access_key: str, session_token: str) -> Claim:
        """Return what an S3 access key claims, before anything is proven. Raises `Unauthenticated`."""
        named = read_token(access_key, self._keys.newest())
        if named is not None:
            secret = token_key_pair(self._key(named[1]), named[1], named[0]).secret
            return Claim(secret, digest_of("s3", access_key), token=named[0])
        lease = read_lease(access_key) or (None if session_token else self._narrowed(access_key))
        wanted = self._expect(*(parse_lease_head(session_token) if lease is None else self._chain(lease)))
        pair = key_pair_of(wanted)
        if pair.access_key != access_key:
            raise Unauthenticated("access key", "not that of the session token")
        return Claim(pair.secret, digest_of("s3", access_key, pair.session_token), lease=wanted)

    def admit(self, claim: Claim, now: int) -> Holder:
        """Return whom a claim that was proven speaks for. Raises as `recognise`."""
        if claim.lease is not None:
            return self._admit(claim.lease, now)
        assert claim.token is not None
        token, _ = self._find_token(claim.token, now)
        return self._holder_of(token)

    def key_pair(self, lease: LeaseId) -> KeyPair:
        """Return the S3 key pair of a lease and have its access key found without a session token. Raises `Unknown`, `KeyMissing`."""
        pair = key_pair_of(parse_lease_token(self.secret_of(lease)))
        if pair.session_token:
            self._engine.documents.put(_NARROWED_KEYS, pair.access_key, {"lease": lease}, 0)
        return pair

    def token_key_pair(self, token: str) -> KeyPair:
        """Return the S3 key pair of a principal's token. Raises `Unknown`."""
        found, _ = self._engine.tokens.find(TokenId(token))
        epoch = self._keys.newest()
        return token_key_pair(self._keys.key(epoch), epoch, found.id)

    def basic_password(self, lease: LeaseId) -> str:
        """Return the password of a lease for HTTP Basic. Raises `Unknown`, `KeyMissing`."""
        return basic_of(parse_lease_token(self.secret_of(lease))).reveal().decode()

    def issue_lease(self, run: RunId, principal: PrincipalName, owner: PrincipalName, scope: Scope, now: int) -> tuple[Lease, str]:
        """Make a root lease and return it with its secret. Raises `Unknown`, `Disabled`, `ScopeInvalid`."""
        check_scope(scope, now)
        self._active(principal)
        self._active(owner)
        lease = Lease(LeaseId(self.make_id("l")), run, principal, owner, scope, now)
        chain = Chain(lease.id, (), self._keys.newest())
        self._engine.leases.add(lease, chain)
        return lease, self._secret(chain)

    def narrow_lease(self, parent: LeaseId, wanted: Scope, now: int) -> tuple[Lease, str]:
        """Make a lease below another and return it with its secret.

        Raises `Unknown`, `Widened`, `ScopeInvalid`, `LeaseExpired`, `LeaseRevoked`, `KeyMissing`.
        """
        above, chain = self._engine.leases.find(parent)
        require_usable(above, now)
        scope = narrow_scope(above.scope, wanted)
        check_scope(scope, now)
        caveat = caveat_between(above.scope, scope)
        longer = Chain(chain.root, (*chain.caveats, caveat), chain.epoch)
        if fits(LeaseToken(longer.root, longer.caveats, Secret(bytes(32)))) and _makes(above.scope, caveat, scope):
            lease, is_fresh = self._child(above, longer, now, Effort(NARROWING_EFFORT))
            self._keep([(lease, longer)] if is_fresh else [])
            require_usable(lease, now)
            return lease, self._secret(longer)
        own = LeaseId(self.make_id("l"))
        fresh = Chain(own, (), self._keys.newest())
        lease = Lease(own, above.run, above.principal, above.on_behalf_of, scope, now, above.id)
        self._engine.leases.add(lease, fresh)
        return lease, self._secret(fresh)

    def secret_of(self, lease: LeaseId) -> str:
        """Return the secret of a lease again. Raises `Unknown`, `KeyMissing`."""
        return self._secret(self._engine.leases.find(lease)[1])

    def make_id(self, letter: str) -> str:
        """Return an id of 80 random bits that starts with a letter."""
        return letter + base64.b32encode(self._entropy(10)).decode().lower()

    def _active(self, name: str) -> Principal:
        principal = self._engine.principals.find(name)
        if principal.disabled:
            raise Disabled(name, "may not act any more")
        return principal

    def _secret(self, chain: Chain) -> str:
        return encode_lease_token(genuine_token(self._keys.key(chain.epoch), chain.root, chain.caveats))

    def _recognise_token(self, text: str, now: int) -> Holder:
        number, secret = parse_principal_token(text)
        token, digest = self._find_token(number, now)
        if hash_secret(secret) != digest:
            raise Unauthenticated("token", "unknown or revoked")
        return self._holder_of(token)

    def _find_token(self, number: TokenId, now: int) -> tuple[Token, Secret]:
        """Return a token that counts, with the hash of its secret. Raises `Unauthenticated`."""
        try:
            token, digest = self._engine.tokens.find(number)
        except Unknown as error:
            raise Unauthenticated("token", "unknown or revoked") from error
        if token.revoked is not None or (token.expires is not None and now >= token.expires):
            raise Unauthenticated("token", "unknown or revoked")
        return token, digest

    def _holder_of(self, token: Token) -> Holder:
        return Holder(self._active(token.principal), token=token.id, until=FOREVER if token.expires is None else token.expires)

    def _recognise_lease(self, text: str, now: int) -> Holder:
        token = parse_lease_token(text)
        lease, chain = self._nearest(token)
        if not token.is_under(self._key(chain.epoch)):
            raise Unauthenticated("lease token", "unknown")
        return self._let_in(lease if lease.id == token.id else self._grow(token, now), now)

    def _recognise_mount(self, text: str, now: int) -> Holder:
        shown = parse_mount(text)
        token = self._expect(shown.root, shown.caveats)
        if mount_tail_of(token) != shown.tail:
            raise Unauthenticated("mount credential", "unknown")
        return self._admit(token, now)

    def _nearest(self, token: LeaseToken) -> tuple[Lease, Chain]:
        """Return the lease of a token when it was seen before, else its root. Raises `Unauthenticated`."""
        for lease in (token.id, token.root):
            try:
                return self._engine.leases.find(lease)
            except Unknown:
                continue
        raise Unauthenticated("lease token", "unknown")

    def _chain(self, lease: LeaseId) -> tuple[LeaseId, tuple[Caveat, ...]]:
        """Return the root of a lease and its caveats. Raises `Unauthenticated`."""
        try:
            chain = self._engine.leases.find(lease)[1]
        except Unknown as error:
            raise Unauthenticated("lease", "unknown") from error
        return chain.root, chain.caveats

    def _narrowed(self, access_key: str) -> LeaseId:
        """Return the narrowed lease whose access key was handed out by `key_pair`. Raises `Unauthenticated`."""
        try:
            return LeaseId(self._engine.documents.find(_NARROWED_KEYS, access_key).body["lease"])
        except Unknown as error:
            raise Unauthenticated("access key", "unknown") from error

    def _expect(self, root: LeaseId, caveats: tuple[Caveat, ...]) -> LeaseToken:
        """Return the one token that these caveats make of a root. Raises `Unauthenticated`."""
        try:
            _, chain = self._engine.leases.find(root)
        except Unknown as error:
            raise Unauthenticated("lease token", "unknown") from error
        return genuine_token(self._key(chain.epoch), root, caveats)

    def _key(self, epoch: int) -> Secret:
        try:
            return self._keys.key(epoch)
        except KeyMissing as error:
            raise Unauthenticated("lease token", error.why) from error

    def _admit(self, token: LeaseToken, now: int) -> Holder:
        """Return the holder of a token that was proven, making the rows of narrowings that were not seen before."""
        lease, _ = self._nearest(token)
        return self._let_in(lease if lease.id == token.id else self._grow(token, now), now)

    def _let_in(self, lease: Lease, now: int) -> Holder:
        require_usable(lease, now)
        self._active(lease.on_behalf_of)
        return Holder(self._active(lease.principal), lease=lease, until=lease.scope.expires)

    def _grow(self, token: LeaseToken, now: int) -> Lease:
        """Return the lease of a proven token, making the rows it needs.

        They need not be on stable storage: the token makes them again, and what is durable later is stored after them.
        """
        effort = Effort(NARROWING_EFFORT)
        with self._engine.transaction(durable=False):
            lease, chain = self._engine.leases.find(token.root)
            grown: list[tuple[Lease, Chain]] = []
            for count in range(1, len(token.caveats) + 1):
                require_usable(lease, now)
                longer = Chain(token.root, token.caveats[:count], chain.epoch)
                lease, is_fresh = self._child(lease, longer, now, effort)
                if is_fresh:
                    grown.append((lease, longer))
            self._keep(grown)
        return lease

    def _child(self, parent: Lease, chain: Chain, now: int, effort: Effort) -> tuple[Lease, bool]:
        """Return the lease that a chain makes of its parent, and whether nobody has seen it yet."""
        number = child_id(chain.root, chain.caveats)
        try:
            return self._engine.leases.find(number)[0], False
        except Unknown:
            scope = _narrowed(parent.scope, chain.caveats[-1], effort)
            return Lease(number, parent.run, parent.principal, parent.on_behalf_of, scope, now, parent.id), True

    def _keep(self, grown: list[tuple[Lease, Chain]]) -> None:
        """Store leases of one root, in order. Raises `LeaseRevoked` when that would be too many."""
        if grown and self._engine.leases.count(grown[0][1].root) + len(grown) > MAX_NARROWINGS:
            raise LeaseRevoked(grown[0][0].id, f"narrowed more than {MAX_NARROWINGS} times")
        for lease, chain in grown:
            self._engine.leases.add(lease, chain)


def _narrowed(scope: Scope, caveat: Caveat, effort: Effort) -> Scope:
    """Return the scope below another. Raises `Widened` where none may be, `Unauthenticated` for a caveat that takes too much effort."""
    require_divisible(scope)
    try:
        narrower = apply_caveat(scope, caveat, effort)
    except ScopeInvalid as error:
        raise Unauthenticated("lease token", error.why) from error
    if len(narrower.actors) > MAX_ACTORS:
        raise Widened("actors", f"a chain of more than {MAX_ACTORS} actors is not told apart")
    return narrower


def _makes(scope: Scope, caveat: Caveat, wanted: Scope) -> bool:
    """Tell whether a caveat gives exactly the wanted scope, with the effort that is spent where its token is first seen."""
    try:
        return apply_caveat(scope, caveat, Effort(NARROWING_EFFORT)) == wanted
    except ScopeInvalid:
        return False
