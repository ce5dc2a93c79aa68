"""Who comes in: every way of proving who somebody is, and waiting for those who keep failing.

1. Each way ends in an `Identity`; what may be done with it, the policy decides. There is no other way to one from outside: every
   request of every door comes through here, by `nasd.entrance`.
2. The secret of a lease, and a signature with it, is looked at whatever happened before: nobody can guess it, and a wait that anybody
   can cause for everybody on the loopback would let one agent stop another. What is wrong is still counted, and answered with a wait.
3. A principal's token and an app password are not looked at during a wait, unless this very credential was right before (`Attempts`).
4. What is counted is known here (a principal, a lease, a token): invented names share one count for each address, so that the table and
   the record stay small. A burst is recorded once, with who was meant and from where.
5. At the Unix socket, which the kernel keeps for its owner, nothing is counted.
6. A lease counts at its doors only, and for who proves to have the key that it is bound to, when it is bound to one.
7. A mount credential comes in at the HTTP door and speaks for a mount: `nasd.entrance` lets it do nothing but mount.
8. Any thread may call.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace

from interfaces.faults import Fault, Kind
from interfaces.port import Arrival
from nasd.faults import as_fault
from nasd.identities.attempts import Attempts
from nasd.identities.certificates import Certificates
from nasd.identities.claims import Unbelievable
from nasd.identities.keysets import PAUSE, Unreachable
from nasd.identities.lockout import FREE, FREE_ADDRESS, begins_burst, block_of, is_shared
from nasd.identities.oidc import Assertions
from nasd.identities.passwords import PREFIX, AppPasswords
from nasd.identities.presence import Presence
from nasd.identities.proofs import proofs_of
from nasd.identities.provisioning import resolve
from nasd.wiring import Appliance
from trust.credentials import Claim
from trust.derived import SigningKey
from trust.errors import Unauthenticated, Unknown
from trust.model import Identity, LeaseId
from trust.presented import digest_of
from trust.tokens import LEASE_PREFIX, MOUNT_PREFIX, PRINCIPAL_PREFIX, parse_lease_token

MOUNTING = "mount"
"""The method of who came with a mount credential."""
NOBODY = "nobody known"
"""What invented names are counted as."""
_JWT = "eyJ"
_KEPT = 4096
log = logging.getLogger("nasd.identities")


class Doorkeeper:
    """Lets callers in."""

    def __init__(self, appliance: Appliance) -> None:
        """Recognise whom `appliance` knows. Raises `OSError`."""
        settings = appliance.settings
        settings.run.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._appliance = appliance
        self._trust = appliance.trust
        self._attempts = Attempts(settings.run / "attempts")
        self._assertions = Assertions(settings.issuers, time.monotonic)
        self._passwords = AppPasswords(appliance.trust, appliance.entropy)
        self._certificates = Certificates(appliance.trust)
        self._presence = Presence(appliance.trust)
        self._established: set[bytes] = set()
        self._entered: dict[tuple[int, str, str], tuple[Identity, Identity]] = {}

    def bearer(self, secret: str, arrival: Arrival) -> Identity:
        """Return whom a bearer secret speaks for. Raises `Fault`, and what `Trust.authenticate` raises."""
        now = self._appliance.now()
        if secret.startswith(_JWT):
            return self._believe(secret, arrival, now)
        if secret.startswith(f"{PRINCIPAL_PREFIX}."):
            subject = secret.split(".", 2)[1]
            return self._look(secret, subject, arrival, lambda: self._enter("token", self._trust.authenticate(secret, now), arrival))
        if secret.startswith(f"{MOUNT_PREFIX}."):
            return self._weigh(NOBODY, arrival, lambda: self._enter(MOUNTING, self._trust.authenticate(secret, now), arrival))
        return self._weigh(secret, arrival, lambda: self._enter("lease", self._trust.authenticate(secret, now), arrival))

    def basic(self, user: str, password: str, arrival: Arrival) -> Identity:
        """Return whom HTTP Basic credentials speak for. Raises as `bearer`."""
        now = self._appliance.now()
        if password.startswith(f"{PREFIX}."):
            return self._look(f"{user}\0{password}", user, arrival, lambda: self._by_password(user, password, arrival, now))
        recognise = self._by_basic(user, password, arrival, now)
        if password.startswith(f"{PRINCIPAL_PREFIX}."):
            return self._look(f"{user}\0{password}", user, arrival, recognise)
        return self._weigh(user, arrival, recognise)

    def certificate(self, arrival: Arrival) -> Identity:
        """Return whom the certificate of an arrival speaks for. Raises as `bearer`."""
        now = self._appliance.now()

        def recognise() -> Identity:
            principal = self._certificates.recognise(arrival.certificate, now)
            return self._arrived(Identity(principal, self._trust.roles(principal), method="certificate"), arrival)

        return self._weigh(NOBODY, arrival, recognise)

    def signing_key(
        self, access_key: str, session_token: str, day: str, region: str, service: str, arrival: Arrival
    ) -> tuple[SigningKey, Claim]:
        """Return what signs as the holder of an S3 key pair, and what it claims. Raises as `bearer`."""
        try:
            return self._trust.signing_key(access_key, session_token, day, region, service)
        except Unauthenticated as error:
            raise self._count(NOBODY, arrival, as_fault(error)) from error

    def admit(self, claim: Claim, arrival: Arrival) -> Identity:
        """Return whom a proven claim speaks for. Raises what `Trust.admit` raises."""
        identity = self._trust.admit(claim, self._appliance.now())
        return self._enter("token" if claim.token else "lease", identity, arrival)

    def refuse_signature(self, claim: Claim, arrival: Arrival) -> None:
        """Count a wrong signature. Raises `Kind.THROTTLED` for who has to wait; the door says the rest in its own words."""
        fault = self._count(claim.token or (claim.lease.root if claim.lease else NOBODY), arrival, Fault(Kind.UNAUTHENTICATED, ""))
        if fault.kind is Kind.THROTTLED:
            raise fault

    def flush(self) -> None:
        """Write down what was counted on the way."""
        self._passwords.flush()
        self._presence.flush(self._appliance.now())

    def close(self) -> None:
        """Write down what was counted and let go of everything; nobody calls any more."""
        self._passwords.flush()
        self._presence.flush()
        self._attempts.close()

    def _arrived(self, identity: Identity, arrival: Arrival) -> Identity:
        """Return who came in at a door.

        Raises `trust.errors.WrongDoor`, `trust.errors.HolderUnproven`; `Kind.DENIED` for mount credentials elsewhere than at HTTP.
        """
        door = arrival.door
        if identity.method == MOUNTING:
            if door not in ("", "http"):
                raise Fault(Kind.DENIED, f"a mount credential is none for {door}", hint="show it to `nas mount`, as --lease-file")
            door = "mount"
        self._presence.demand(identity, door, proofs_of(arrival.certificate), self._appliance.now())
        return replace(identity, door=door)

    # -- ways in ------------------------------------------------------------------------------------------------------

    def _by_basic(self, user: str, password: str, arrival: Arrival, now: int) -> Callable[[], Identity]:
        def recognise() -> Identity:
            identity = self._trust.authenticate_basic(user, password, now)
            return self._enter("lease" if identity.lease else "token", identity, arrival)

        return recognise

    def _by_password(self, user: str, password: str, arrival: Arrival, now: int) -> Identity:
        principal, limits = self._passwords.recognise(user, password, arrival.door, now)
        return self._arrived(Identity(principal, self._trust.roles(principal), method="app-password", limits=limits), arrival)

    def _enter(self, method: str, identity: Identity, arrival: Arrival) -> Identity:
        """Return what `trust` recognised, as it arrived. It gives the same identity for the same credential until rights change."""
        key = (id(identity), method, arrival.door)
        kept = self._entered.get(key)
        if kept is not None and kept[0] is identity:
            return kept[1]
        entered = self._arrived(replace(identity, method=method), arrival)
        if identity.scope is None or not identity.scope.holder:  # a key has to be proven each time
            if len(self._entered) >= _KEPT:
                self._entered = {}
            self._entered[key] = (identity, entered)
        return entered

    def _believe(self, token: str, arrival: Arrival, now: int) -> Identity:
        """Return whom an issuer says that somebody is. What it says is known from the token itself, so its faults are told."""
        try:
            issuer, assertion = self._assertions.believe(token, now)
        except Unreachable as error:
            raise Fault(
                Kind.UNAVAILABLE,
                f"whether the token is genuine cannot be told: {error}",
                hint="repeat in a moment; leases and tokens of this appliance work meanwhile",
                wait=math.ceil(PAUSE),
            ) from error
        except Unbelievable as error:
            fault = Fault(Kind.UNAUTHENTICATED, f"the token is not believed: {error}", hint="log in again with `nas login`")
            raise self._count(NOBODY, arrival, fault) from error

        def recognise() -> Identity:
            principal = resolve(self._trust, issuer, assertion, now)
            if principal.disabled:
                raise Fault(Kind.DENIED, f"{principal.name} may not act any more", hint="ask the owner")
            return self._arrived(Identity(principal, self._trust.roles(principal), method="oidc"), arrival)

        return self._weigh(NOBODY, arrival, recognise)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _look(self, credential: str, subject: str, arrival: Arrival, recognise: Callable[[], Identity]) -> Identity:
        """Recognise a credential that a wait keeps out (rule 3)."""
        if not arrival.client:
            return self._weigh(subject, arrival, recognise)
        digest = digest_of("credential", credential)
        if digest not in self._established:
            self._require_patience(subject, digest, arrival)
        identity = self._weigh(subject, arrival, recognise)
        if digest not in self._established:
            if len(self._established) >= _KEPT:
                self._established.clear()
            self._established.add(digest)
            self._attempts.establish(digest, self._appliance.clock())
        return identity

    def _weigh(self, subject: str, arrival: Arrival, recognise: Callable[[], Identity]) -> Identity:
        """Recognise a credential, and count it where it is wrong."""
        try:
            return recognise()
        except Unauthenticated as error:
            raise self._count(subject, arrival, as_fault(error)) from error

    def _require_patience(self, subject: str, digest: bytes, arrival: Arrival) -> None:
        now = self._appliance.clock()
        wait = self._wait(subject, arrival.client, now)
        if wait and not self._attempts.is_established(digest, now):
            raise _throttled(wait)

    def _wait(self, subject: str, client: str, now: float) -> float:
        address = block_of(client)
        waits = [self._attempts.find(subject, address).wait(now)]
        if not is_shared(client):
            waits.append(self._attempts.find("", address).wait(now))
        return max(waits)

    def _count(self, subject: str, arrival: Arrival, fault: Fault) -> Fault:
        """Count a failure, and return the fault to raise: the one given, or that there is a wait."""
        if not arrival.client:
            return fault
        now, known, address = self._appliance.clock(), self._known(subject), block_of(arrival.client)
        wait = self._wait(known, arrival.client, now)
        if wait:
            return _throttled(wait)
        self._strike(known, address, arrival, now, FREE)
        if not is_shared(arrival.client):
            self._strike("", address, arrival, now, FREE_ADDRESS)
        wait = self._wait(known, arrival.client, now)
        return _throttled(wait) if wait else fault

    def _strike(self, subject: str, address: str, arrival: Arrival, now: float, free: int) -> None:
        before, after = self._attempts.strike(subject, address, now=now, free=free)
        if begins_burst(before, after, free):
            body = {"subject": subject or "anybody", "client": address, "door": arrival.door, "failures": after.count}
            self._trust.state("auth.locked", None, body, int(now))
            log.warning("%d wrong credentials for %s from %s at %s: it has to wait", after.count, body["subject"], address, arrival.door)

    def _known(self, subject: str) -> str:
        """Return what a name that somebody presented is counted as (rule 4)."""
        if subject.startswith(f"{LEASE_PREFIX}."):
            subject = _root_of(subject)
        if subject == NOBODY or len(subject) > 255:
            return NOBODY
        for find in (self._trust.principal, lambda name: self._trust.lease(LeaseId(name)), self._trust.token):
            try:
                find(subject)
            except Unknown:
                continue
            return subject
        return NOBODY


def _root_of(lease_token: str) -> str:
    """Return the lease that a token claims to hang on; `NOBODY` where it cannot be read."""
    try:
        return parse_lease_token(lease_token).root
    except Unauthenticated:
        return NOBODY


def _throttled(wait: float) -> Fault:
    seconds = max(1, math.ceil(wait))
    return Fault(Kind.THROTTLED, "too many wrong credentials", hint=f"wait {seconds} s, then use the right one", wait=seconds)
