"""The public keys of an issuer: found by discovery, kept, and asked for again when it rotates them.

1. Keys are fresh for as long as the issuer says, at least a minute and at most a day. When it does not answer, those it had count for a day
   more: a pause of the issuer is no outage here.
2. A key that is not known is asked for once every `PAUSE` seconds at most, whatever anybody presents; a failure is remembered as long. So a
   stranger who invents keys makes us ask the issuer six times a minute, and nobody waits for that but at most `WAITING` requests.
3. One request asks at a time. An answer is bounded in size and time, comes from where discovery pointed and follows no redirect.
4. Without keys nobody can be believed or disbelieved: that is `Unreachable`, and never a refusal of the credential.
5. Any thread may call.
"""

from __future__ import annotations

import json
import logging
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from nasd.identities.issuers import Issuer, is_reachable_safely

DISCOVERY = "/.well-known/openid-configuration"
FRESH_SECONDS = (60.0, 3600.0, 86400.0)
"""How long keys are fresh: at least, where nothing is said, at most."""
STALE_SECONDS = 86400.0
PAUSE = 10.0
WAITING = 4
SECONDS = 5.0
LONGEST = 1 << 20
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=(\d{1,9})(?:$|[,\s])")
_NO_KEYS = KeySet([])
log = logging.getLogger("nasd.identities")

PublicKey = RSAKey | ECKey | OKPKey


class Unreachable(Exception):
    """The issuer does not answer, or not as one. The text says why."""


Fetch = Callable[[str], tuple[Mapping[str, Any], Mapping[str, str]]]
"""Returns the JSON object at a url, and the headers of the answer. Raises `Unreachable`."""


class Keys:
    """The keys of one issuer."""

    def __init__(self, issuer: Issuer, fetch: Fetch, clock: Callable[[], float]) -> None:
        """Ask by `fetch`; `clock` gives seconds that never go back."""
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(WAITING)
        self._keys = _NO_KEYS
        self._fresh_until = self._counts_until = self._quiet_until = float("-inf")
        self._failure = ""

    def find(self, kid: str) -> PublicKey | None:
        """Return the key of this id (empty: the only one there is), None where the issuer has none. Raises `Unreachable`."""
        now = self._clock()
        found = self._known(kid, now)
        if (found is not None and now < self._fresh_until) or now < self._quiet_until:
            return self._or_unreachable(found)
        if not self._room.acquire(blocking=False):
            return self._or_unreachable(found, f"{self._issuer.name} is slow to answer, and enough others wait for it")
        try:
            with self._lock:
                self._refresh(kid)
                return self._or_unreachable(self._known(kid, self._clock()))
        finally:
            self._room.release()

    def _refresh(self, kid: str) -> None:
        now = self._clock()
        if now < self._quiet_until or (self._known(kid, now) is not None and now < self._fresh_until):
            return  # somebody else asked while this one waited
        try:
            keys, seconds = self._ask()
        except Unreachable as error:
            self._failure = str(error)
            log.warning("the keys of %s cannot be had: %s", self._issuer.name, error)
        else:
            self._keys, self._failure = keys, ""
            answered = self._clock()
            self._fresh_until, self._counts_until = answered + seconds, answered + seconds + STALE_SECONDS
        self._quiet_until = self._clock() + PAUSE

    def _ask(self) -> tuple[KeySet, float]:
        found, _ = self._fetch(self._issuer.issuer.rstrip("/") + DISCOVERY)
        if found.get("issuer") != self._issuer.issuer:
            raise Unreachable(f"it calls itself {str(found.get('issuer'))[:200]!r}")
        address = found.get("jwks_uri")
        if not isinstance(address, str) or not is_reachable_safely(address):
            raise Unreachable("it names no https address of its keys")
        document, headers = self._fetch(address)
        return read_keys(document), lifetime_of(headers)

    def _known(self, kid: str, now: float) -> PublicKey | None:
        if now >= self._counts_until:
            return None
        keys = [key for key in self._keys.keys if key.kid == kid] if kid else self._keys.keys
        return keys[0] if len(keys) == 1 and isinstance(keys[0], RSAKey | ECKey | OKPKey) else None

    def _or_unreachable(self, found: PublicKey | None, why: str = "") -> PublicKey | None:
        why = why or self._failure
        if found is None and why:
            raise Unreachable(why)
        return found


def read_keys(document: Mapping[str, Any]) -> KeySet:
    """Return the public keys for signatures of a key set; what is none of them is passed over. Raises `Unreachable`."""
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise Unreachable("what it publishes is no set of keys")
    keys = [key for key in (_read_key(each) for each in listed[:100]) if key is not None]
    return KeySet(list(keys))


def _read_key(document: object) -> PublicKey | None:
    if not isinstance(document, dict) or document.get("use", "sig") != "sig":
        return None
    kinds: Mapping[object, type[PublicKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
    kind = kinds.get(document.get("kty"))
    # A private half that somebody published by mistake is left where it is.
    public = {name: value for name, value in document.items() if name not in {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}}
    try:
        return kind.import_key(public) if kind else None
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def lifetime_of(headers: Mapping[str, str]) -> float:
    """Return how long an answer with these headers is fresh."""
    least, usual, most = FRESH_SECONDS
    match = _MAX_AGE.search(headers.get("cache-control", ""))
    return min(max(float(match[1]), least), most) if match else usual


def fetch_json(url: str, certificates: str = "") -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return the JSON object at a url and the headers of the answer. Raises `Unreachable`."""
    import httpx2  # only a process that asks an issuer pays for it

    try:
        context = ssl.create_default_context(cafile=certificates or None)
        with (
            httpx2.Client(verify=context, timeout=SECONDS, follow_redirects=False, trust_env=False) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as answer,
        ):
            if answer.status_code != 200:
                raise Unreachable(f"{url} answers {answer.status_code}")
            body = bytearray()
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > LONGEST:
                    raise Unreachable(f"{url} answers more than {LONGEST} bytes")
            document = json.loads(body)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError) as error:
        raise Unreachable(f"{url}: {str(error) or type(error).__name__}") from error
    if not isinstance(document, dict):
        raise Unreachable(f"{url} answers something else than an object")
    return document, {name.lower(): value for name, value in answer.headers.items()}
