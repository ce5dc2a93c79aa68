"""App passwords: what a person gives one program for one door, so that it never has more than it needs.

1. Made here, 256 random bits, shown once, kept as a SHA-256. Nobody chooses one, so nobody guesses one, and checking costs one hash.
2. Each is for one door, and for these paths and actions at most; with it nobody administers, answers a gate or makes another.
3. It ends when it is revoked, when its time is over, or when its person is disabled; at the next request, in every process.
4. When it was used last is written down at most once a minute, some time later: reading never waits for the disk.
5. Any thread may call.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interfaces.faults import Fault, Kind
from nasd.identities.limits import describe_limits, read_limits
from trust.errors import Outdated, Taken, Unauthenticated, Unknown
from trust.model import Document, Principal, Scope
from trust.secret import Secret
from trust.service import Trust

PREFIX = "nap1"
"""What every app password starts with."""
DOORS = frozenset({"webdav", "git"})
"""The doors that take one."""
USE_SECONDS = 60
_KIND = "app-password"
_USES = "app-password-use"
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class AppPassword:
    """An app password; of its secret there is only the hash, which stays in its document."""

    id: str
    principal: str
    label: str
    limits: Scope
    created: int
    used: int | None = None


class AppPasswords:
    """The app passwords of one appliance."""

    def __init__(self, trust: Trust, entropy: Callable[[int], bytes]) -> None:
        """Keep them among the documents of trust."""
        self._trust = trust
        self._entropy = entropy
        self._lock = threading.Lock()
        self._used: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def create(self, principal: str, label: str, limits: Scope, now: int) -> tuple[AppPassword, str]:
        """Make one and return it with its secret, this once."""
        number = "p" + base64.b32encode(self._entropy(10)).decode().lower()
        secret = self._entropy(_SECRET_BYTES)
        made = AppPassword(number, principal, label, limits, now)
        body = {
            "principal": principal,
            "label": label,
            "limits": describe_limits(limits),
            "created": now,
            "digest": hashlib.sha256(secret).hexdigest(),
        }
        self._trust.put_document(_KIND, number, body, 0)
        return made, f"{PREFIX}.{number}.{base64.urlsafe_b64encode(secret).rstrip(b'=').decode()}"

    def recognise(self, user: str, text: str, door: str, now: int) -> tuple[Principal, Scope]:
        """Return whose an app password is, and its limits. Raises `Unauthenticated`, the same for all that is wrong with it."""
        number, secret = parse_password(text)
        try:
            body = self._trust.document(_KIND, number).body
            principal = self._trust.principal(body["principal"])
        except Unknown as error:
            raise _wrong() from error
        limits = read_limits(body["limits"])
        right = Secret(hashlib.sha256(secret).digest()) == Secret(bytes.fromhex(body["digest"]))
        if not right or principal.name != user or now >= limits.expires or door not in (limits.doors or ()):
            raise _wrong()
        if principal.disabled:
            raise _wrong()
        with self._lock:
            self._used[number] = now
        return principal, limits

    def find(self, number: str) -> AppPassword:
        """Return one. Raises `Kind.NOT_FOUND`."""
        try:
            return self._view(self._trust.document(_KIND, number))
        except Unknown:
            raise Fault(Kind.NOT_FOUND, f"{number}: no such app password", hint="`nas app-password list` shows them") from None

    def all(self) -> Sequence[AppPassword]:
        """Return every one, ordered by its id."""
        return [self._view(document) for document in self._trust.documents(_KIND)]

    def revoke(self, number: str) -> None:
        """End one: it lets nobody in any more. Repeats do nothing."""
        for kind in (_KIND, _USES):
            try:
                self._trust.remove_document(kind, number, self._trust.document(kind, number).version)
            except Unknown:
                continue

    def flush(self) -> None:
        """Write down what was used since, where a minute or more has passed."""
        with self._lock:
            used = {number: at for number, at in self._used.items() if at - self._written.get(number, -USE_SECONDS) >= USE_SECONDS}
            self._written.update(used)
            self._used = {number: at for number, at in self._used.items() if number not in used}
        for number, at in used.items():
            self._write_use(number, at)

    def _write_use(self, number: str, at: int) -> None:
        try:
            self._trust.document(_KIND, number)
        except Unknown:
            return  # revoked since
        try:
            version = self._trust.document(_USES, number).version
        except Unknown:
            version = 0
        try:
            self._trust.put_document(_USES, number, {"at": at}, version)
        except (Outdated, Taken):
            return  # another process wrote about the same minute

    def _view(self, document: Document) -> AppPassword:
        found = _read(document.id, document.body)
        try:
            return replace(found, used=int(self._trust.document(_USES, document.id).body["at"]))
        except Unknown:
            return found


def parse_password(text: str) -> tuple[str, bytes]:
    """Return id and secret of an app password. Raises `Unauthenticated`."""
    parts = text.split(".")
    if len(parts) != 3 or parts[0] != PREFIX or len(text) > 128:
        raise _wrong()
    try:
        secret = base64.b64decode(parts[2] + "=" * (-len(parts[2]) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _wrong() from error
    if len(secret) != _SECRET_BYTES:
        raise _wrong()
    return parts[1], secret


def _wrong() -> Unauthenticated:
    return Unauthenticated("app password", "unknown, revoked, or not for this")


def _read(number: str, body: Mapping[str, Any]) -> AppPassword:
    return AppPassword(number, body["principal"], body["label"], read_limits(body["limits"]), body["created"])
