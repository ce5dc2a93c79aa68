"""Certificates of clients: which of them speaks for which principal.

1. What is registered is a thumbprint (SHA-256 of the whole certificate), a subject (RFC 4514) or an alternative name (``DNS:``,
   ``URI:``, ``email:``) for one principal. Only a human or a service has one: agents get leases.
2. The proxy proved that its client has the key, and who issued it; here the name is looked up and the certificate's own times are checked.
3. A certificate with two registered names speaks for nobody unless both mean the same principal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from cryptography import x509

from interfaces.faults import Fault, Kind
from trust.errors import Taken, Unauthenticated, Unknown
from trust.model import Principal
from trust.service import Trust

_KIND = "client-certificate"
_FORMS = ("sha256:", "subject:", "DNS:", "URI:", "email:")
_HEX = frozenset("0123456789abcdef")
_LONGEST = 512


@dataclass(frozen=True, slots=True)
class Registered:
    """A name in certificates, and the principal it stands for."""

    id: str
    name: str
    principal: str
    label: str
    created: int


def parse_name(text: str) -> str:
    """Return a name of a certificate as it is registered. Raises `Kind.INVALID`."""
    name = text.strip()
    form = next((form for form in _FORMS if name.lower().startswith(form.lower())), None)
    rest = name[len(form) :].strip() if form else ""
    if not form or not rest or len(rest) > _LONGEST or not rest.isprintable():
        raise Fault(Kind.INVALID, f"{text[:80]!r} names no certificate", hint=f"begin with one of {' '.join(_FORMS)}")
    if form == "sha256:":
        rest = rest.replace(":", "").lower()
        if len(rest) != 64 or not set(rest) <= _HEX:
            raise Fault(Kind.INVALID, "a thumbprint has 64 hex digits", hint="openssl x509 -noout -fingerprint -sha256 -in FILE")
    if form == "subject:":
        try:
            rest = x509.Name.from_rfc4514_string(rest).rfc4514_string()
        except ValueError:
            raise Fault(Kind.INVALID, f"{rest[:80]!r} is no subject", hint="for example subject:CN=ana,O=Example") from None
    return form + (rest.lower() if form in {"DNS:", "email:"} else rest)


def names_of(certificate: bytes, now: int) -> Sequence[str]:
    """Return the names that a certificate (DER) has at `now`. Raises `Unauthenticated`."""
    try:
        read = x509.load_der_x509_certificate(certificate)
        begins, ends = read.not_valid_before_utc, read.not_valid_after_utc
        subject = read.subject.rfc4514_string()
        others = list(_alternative(read))
    except (ValueError, x509.DuplicateExtension) as error:
        raise Unauthenticated("certificate", "cannot be read") from error
    if not begins <= datetime.fromtimestamp(now, UTC) < ends:
        raise Unauthenticated("certificate", "is not valid now")
    return [f"sha256:{hashlib.sha256(certificate).hexdigest()}", *([f"subject:{subject}"] if subject else []), *others]


def _alternative(certificate: x509.Certificate) -> Sequence[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [
        *(f"DNS:{name.lower()}" for name in found.get_values_for_type(x509.DNSName)),
        *(f"URI:{name}" for name in found.get_values_for_type(x509.UniformResourceIdentifier)),
        *(f"email:{name.lower()}" for name in found.get_values_for_type(x509.RFC822Name)),
    ]


class Certificates:
    """The registered names. Any thread may call."""

    def __init__(self, trust: Trust) -> None:
        """Keep them among the documents of trust."""
        self._trust = trust

    def add(self, name: str, principal: str, label: str, now: int) -> Registered:
        """Register a name. Raises `Kind.EXISTS`."""
        registered = Registered(_id_of(name), name, principal, label, now)
        try:
            self._trust.put_document(_KIND, registered.id, asdict(registered), 0)
        except Taken:
            raise Fault(Kind.EXISTS, f"{name} is registered already", hint="`nas certificate list` shows for whom") from None
        return registered

    def all(self) -> Sequence[Registered]:
        """Return every one, ordered by its id."""
        return [Registered(**document.body) for document in self._trust.documents(_KIND)]

    def find(self, id: str) -> Registered:
        """Return one. Raises `Kind.NOT_FOUND`."""
        try:
            return Registered(**self._trust.document(_KIND, id).body)
        except Unknown:
            raise Fault(Kind.NOT_FOUND, f"{id}: no such certificate", hint="`nas certificate list` shows them") from None

    def remove(self, id: str) -> None:
        """Forget one. Repeats do nothing."""
        try:
            self._trust.remove_document(_KIND, id, self._trust.document(_KIND, id).version)
        except Unknown:
            return

    def recognise(self, certificate: bytes, now: int) -> Principal:
        """Return whom a certificate speaks for. Raises `Unauthenticated`."""
        principals = {registered.principal for name in names_of(certificate, now) if (registered := self._named(name))}
        if len(principals) != 1:
            raise Unauthenticated("certificate", "speaks for nobody here")
        try:
            principal = self._trust.principal(principals.pop())
        except Unknown as error:
            raise Unauthenticated("certificate", "speaks for nobody here") from error
        if principal.disabled:
            raise Unauthenticated("certificate", "speaks for nobody here")
        return principal

    def _named(self, name: str) -> Registered | None:
        try:
            return Registered(**self._trust.document(_KIND, _id_of(name)).body)
        except Unknown:
            return None


def _id_of(name: str) -> str:
    return "c" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]
