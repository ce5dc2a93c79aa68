"""Believing what an issuer says: a JWT in, what it asserts out.

1. The issuer is chosen by what the token claims, among the declared ones; then its own key has to have signed it, by an algorithm that was
   declared for it and fits the key.
2. A token is looked at once: what it asserts is kept under its hash until it ends, so the next request with it costs a hash.
3. Any thread may call; where keys have to be asked for, it waits for the issuer, seconds at most.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from nasd.identities.claims import Assertion, Unbelievable, check_header, judge_claims
from nasd.identities.issuers import Issuer
from nasd.identities.keysets import Keys, PublicKey, fetch_json
from trust.presented import digest_of

MAX_LENGTH = 8192
_KEPT = 4096
_FAMILIES: Mapping[str, type[PublicKey]] = {"RS": RSAKey, "PS": RSAKey, "ES": ECKey, "Ed": OKPKey}


class Assertions:
    """The declared issuers. Any thread may call."""

    def __init__(self, issuers: Sequence[Issuer], clock: Callable[[], float]) -> None:
        """Believe `issuers`; `clock` gives seconds that never go back."""
        self._issuers = {issuer.issuer: issuer for issuer in issuers}
        self._keys = {issuer.issuer: Keys(issuer, partial(fetch_json, certificates=issuer.certificates), clock) for issuer in issuers}
        self._kept: dict[bytes, Assertion] = {}

    def __bool__(self) -> bool:
        """Tell whether any issuer is declared."""
        return bool(self._issuers)

    def named(self, name: str) -> Issuer | None:
        """Return the issuer of a name, None when none is declared by it."""
        return next((issuer for issuer in self._issuers.values() if issuer.name == name), None)

    def believe(self, token: str, now: int) -> tuple[Issuer, Assertion]:
        """Return what a JWT asserts at `now`, and who says so. Raises `Unbelievable`, `keysets.Unreachable`."""
        digest = digest_of("jwt", token)
        kept = self._kept.get(digest)
        if kept is not None and now < kept.until:
            issuer = self.named(kept.issuer)
            assert issuer is not None
            return issuer, kept
        issuer, assertion = self._look(token, now)
        if len(self._kept) >= _KEPT:
            self._kept = {}
        self._kept[digest] = assertion
        return issuer, assertion

    def _look(self, token: str, now: int) -> tuple[Issuer, Assertion]:
        header, claims = read_unproven(token)
        issuer = self._issuers.get(str(claims.get("iss")))
        if issuer is None:
            raise Unbelievable("its issuer is not declared")
        check_header(issuer, header)
        # What can be refused without a key is refused first: nobody makes us ask an issuer for a token that has expired.
        judge_claims(issuer, claims, now)
        kid = header.get("kid", "")
        key = self._keys[issuer.issuer].find(kid if isinstance(kid, str) else "?")
        algorithm = str(header["alg"])
        if key is None:
            raise Unbelievable("its issuer has no such key")
        if not isinstance(key, _FAMILIES[algorithm[:2]]) or key.get("alg") not in {None, algorithm}:
            raise Unbelievable("its key is for another algorithm")
        try:
            proven = jwt.decode(token, key, algorithms=[algorithm])
        except (JoseError, ValueError) as error:
            raise Unbelievable("its signature is wrong") from error
        return issuer, judge_claims(issuer, proven.claims, now)


def read_unproven(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return header and claims of a JWT, not one word of them proven. Raises `Unbelievable`."""
    parts = token.split(".")
    if len(token) > MAX_LENGTH or len(parts) != 3:
        raise Unbelievable("it is no JWT")
    header, claims = (_read_part(part) for part in parts[:2])
    return header, claims


def _read_part(part: str) -> Mapping[str, Any]:
    try:
        text = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        value = json.loads(text, object_pairs_hook=_unique)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise Unbelievable("it is no JWT") from error
    if not isinstance(value, dict):
        raise Unbelievable("it is no JWT")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice")
    return found
