"""Secrets in, holders out: making tokens and leases, and recognising them.

1. A principal's token is a row with the hash of 256 random bits; a lease's secret is computed from its chain and kept nowhere.
2. A lease token that was narrowed offline becomes rows, one for each narrowing, when it is first seen. From then on each can be listed,
   revoked and charged. What is revoked takes everything below it along, seen or not.
3. A lease narrowed here gets the secret that its holder could have computed offline, while the token stays within its limits; beyond them
   it gets a secret of its own. The same narrowing twice is the same lease.
4. A secret that is unknown, revoked or wrong is one answer.
5. The engine's transaction makes checks and rows one step.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from trust.contract import Engine
from trust.errors import Disabled, KeyMissing, LeaseRevoked, Unauthenticated, Unknown
from trust.keys import Keys
from trust.leases import Chain, apply_caveat, caveat_between, check_scope, narrow_scope, require_usable
from trust.model import Lease, LeaseId, Principal, PrincipalName, RunId, Scope, Token, TokenId
from trust.secret import Secret
from trust.tokens import (
    LEASE_PREFIX,
    LeaseToken,
    chain_tail,
    child_id,
    encode_lease_token,
    encode_principal_token,
    fits,
    hash_secret,
    parse_lease_token,
    parse_principal_token,
)

MAX_NARROWINGS = 4096
"""The most leases that hang on one root: a holder cannot fill the disk by narrowing."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a secret belongs to."""

    principal: Principal
    token: TokenId | None = None
    lease: Lease | None = None


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
        """Return whom a secret belongs to.

        Raises `Unauthenticated`, `LeaseExpired`, `LeaseRevoked`, `Disabled`.
        """
        return self._recognise_lease(text, now) if text.startswith(f"{LEASE_PREFIX}.") else self._recognise_token(text, now)

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
        if fits(LeaseToken(longer.root, longer.caveats, Secret(bytes(32)))):
            lease = self._child(above, longer, now)
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
        tail = chain_tail(self._keys.key(chain.epoch), chain.root, chain.caveats)
        return encode_lease_token(LeaseToken(chain.root, chain.caveats, tail))

    def _recognise_token(self, text: str, now: int) -> Holder:
        number, secret = parse_principal_token(text)
        try:
            token, digest = self._engine.tokens.find(number)
        except Unknown as error:
            raise Unauthenticated("token", "unknown or revoked") from error
        if hash_secret(secret) != digest or token.revoked is not None or (token.expires is not None and now >= token.expires):
            raise Unauthenticated("token", "unknown or revoked")
        return Holder(self._active(token.principal), token=token.id)

    def _recognise_lease(self, text: str, now: int) -> Holder:
        token = parse_lease_token(text)
        try:
            root, chain = self._engine.leases.find(token.root)
            key = self._keys.key(chain.epoch)
        except Unknown as error:
            raise Unauthenticated("lease token", "unknown") from error
        except KeyMissing as error:
            raise Unauthenticated("lease token", error.why) from error
        if chain_tail(key, token.root, token.caveats) != token.tail:
            raise Unauthenticated("lease token", "unknown")
        lease = self._materialise(root, token, chain.epoch, now)
        require_usable(lease, now)
        self._active(lease.on_behalf_of)
        return Holder(self._active(lease.principal), lease=lease)

    def _materialise(self, root: Lease, token: LeaseToken, epoch: int, now: int) -> Lease:
        """Return the lease of a verified token, making the rows of narrowings that were not seen before."""
        if not token.caveats:
            return root
        try:
            return self._engine.leases.find(child_id(token.root, token.caveats))[0]
        except Unknown:
            return self._grow(root.id, token, epoch, now)

    def _grow(self, root: LeaseId, token: LeaseToken, epoch: int, now: int) -> Lease:
        with self._engine.transaction():
            lease, _ = self._engine.leases.find(root)
            for count in range(1, len(token.caveats) + 1):
                require_usable(lease, now)
                lease = self._child(lease, Chain(token.root, token.caveats[:count], epoch), now)
        return lease

    def _child(self, parent: Lease, chain: Chain, now: int) -> Lease:
        number = child_id(chain.root, chain.caveats)
        try:
            return self._engine.leases.find(number)[0]
        except Unknown:
            if self._engine.leases.count(chain.root) >= MAX_NARROWINGS:
                raise LeaseRevoked(parent.id, f"narrowed more than {MAX_NARROWINGS} times") from None
        scope = apply_caveat(parent.scope, chain.caveats[-1])
        lease = Lease(number, parent.run, parent.principal, parent.on_behalf_of, scope, now, parent.id)
        self._engine.leases.add(lease, chain)
        return lease
