"""The witnesses that cosign our checkpoints: C2SP tlog-witness, as a log sees it.

1. A witness is an address and a public key; what is not signed by that key is not its word.
2. A witness that knows another size says so (409). A smaller one gets the proof from there; a larger one has seen records that are not
   here, and then its last checkpoint, signed by our own key, is the proof.
3. One that cannot be reached is asked again, after ever longer pauses. Nothing waits for it.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from nasd.errors import Misconfigured
from trust.checkpoints import Kept
from trust.errors import NoteInvalid
from trust.evidence import Evidence
from trust.signed import SignedText, VerifierKey, parse_signature, parse_signed, parse_verifier, verify_signed

PATIENCE = 5.0
_MOST_ANSWER = 1 << 16
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 900.0


@dataclass(frozen=True, slots=True)
class WitnessAddress:
    """Where a witness is, and its key."""

    url: str
    key: VerifierKey


class WitnessFailure(Exception):
    """A witness did not cosign: it cannot be reached, or said why not."""


class WitnessAhead(WitnessFailure):
    """A witness cosigned more records than there are here."""


@dataclass(slots=True)
class Standing:
    """How it stands with one witness: when to ask next, how long to pause after a failure, and what went wrong last."""

    address: WitnessAddress
    next_try: float = 0.0
    pause: float = _FIRST_PAUSE
    failure: str = ""

    def succeed(self) -> None:
        """Note that it answered."""
        self.next_try, self.pause, self.failure = 0.0, _FIRST_PAUSE, ""

    def fail(self, why: str, now: float) -> None:
        """Note that it did not, and pause."""
        self.next_try, self.failure = now + self.pause, why
        self.pause = min(self.pause * 2, _LONGEST_PAUSE)


def read_witness(url: str, key: str) -> WitnessAddress:
    """Return a witness as the setting names it. Raises `nasd.errors.Misconfigured`."""
    try:
        return WitnessAddress(url, parse_verifier(key))
    except NoteInvalid as error:
        raise Misconfigured(f"witnesses: {error}", hint="copy the key that `nas-witness key` prints") from error


def submit(address: WitnessAddress, evidence: Evidence, kept: Kept) -> None:
    """Have a checkpoint cosigned, and keep the signature. Raises `WitnessFailure`, `WitnessAhead`."""
    old = evidence.witnessed(address.key.name)
    status, answer = _post(address.url, _request(evidence, kept, old))
    if status == http.client.CONFLICT:
        known = answer.strip()
        if not known.isdigit():
            raise WitnessFailure(f"said neither yes nor what it knows: {answer[:100]!r}")
        if int(known) > kept.size:
            raise WitnessAhead(f"has cosigned {known} records, and there are {kept.size} here")
        status, answer = _post(address.url, _request(evidence, kept, int(known)))
    if status != http.client.OK:
        raise WitnessFailure(f"answered {status}: {answer.strip()[:200]}")
    evidence.cosign(kept.size, address.key.name, _own_line(address.key, kept, answer))


def last_note(address: WitnessAddress, origin: str, patience: float = PATIENCE) -> str | None:
    """Return the last checkpoint of a log that a witness cosigned, None when it has none. Raises `WitnessFailure`."""
    place = f"/{hashlib.sha256(origin.encode()).hexdigest()}/checkpoint"
    status, answer = _ask(address.url, place, lambda connection, path: connection.request("GET", path), patience)
    if status == http.client.NOT_FOUND:
        return None
    if status != http.client.OK:
        raise WitnessFailure(f"answered {status}")
    return answer


def _request(evidence: Evidence, kept: Kept, old: int) -> bytes:
    proof = "".join(base64.b64encode(each).decode() + "\n" for each in evidence.prove_consistency(old, kept.size))
    return f"old {old}\n{proof}\n{kept.note}".encode()


def _own_line(key: VerifierKey, kept: Kept, answer: str) -> str:
    """Return the line of an answer that the witness's key signed. Raises `WitnessFailure`."""
    try:
        lines = [parse_signature(line) for line in answer.splitlines()]
        verified = verify_signed(SignedText(parse_signed(kept.note).text, tuple(lines)), [key])
    except NoteInvalid as error:
        raise WitnessFailure(f"its answer is no cosignature: {error.why}") from error
    if not verified:
        raise WitnessFailure("its answer is not signed by the key that the setting names")
    return verified[0].signature.render()


def _post(url: str, content: bytes) -> tuple[int, str]:
    return _ask(url, "/add-checkpoint", lambda connection, path: connection.request("POST", path, content), PATIENCE)


def _ask(url: str, place: str, send: Callable[[http.client.HTTPConnection, str], None], patience: float) -> tuple[int, str]:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=patience)
    try:
        send(connection, parts.path.rstrip("/") + place)
        with connection.getresponse() as response:
            return response.status, response.read(_MOST_ANSWER).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise WitnessFailure(f"cannot be reached: {error}") from error
    finally:
        connection.close()
