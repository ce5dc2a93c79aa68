"""Accounts: with which identity something is executed outside, and where; the rules by which one can be.

1. An account has a name, a destination and a reference to its secret, never the secret. The destination is pinned: scheme, host, port
   and the beginning of every path.
2. A path is judged as the most credulous server could read it: decoded until nothing changes. What is then no plain path (a dot segment, a
   slash or backslash that was hidden, a control character) is refused, not repaired.
3. Plain HTTP is for the loopback only.
4. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from trust.errors import AccountInvalid, PatternInvalid
from trust.labels import Label, parse_label
from trust.policy.patterns import parse_pattern

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HEADERS = frozenset(
    {
        "accept",
        "accept-language",
        "content-language",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-unmodified-since",
        "prefer",
        "range",
    }
)
"""The headers that a request may set at any account."""
FORBIDDEN_HEADERS = frozenset(
    {
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
    }
)
"""The headers that no account may open: they carry credentials, or change what is asked or of whom."""
LONGEST_PATH = 4096
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_PORTS = {"https": 443, "http": 80}
_SCHEMES = frozenset({"env", "file", "systemd", "vault"})
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")
_TOKEN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_VARIABLE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_PATH = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@%/")
_DECODINGS = 4


class AccountKind(enum.Enum):
    """How a secret is presented."""

    BEARER = "bearer"
    BASIC = "basic"
    HEADER = "header"
    GIT = "git"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an account's requests go and nowhere else; `prefix` has no slash at its end."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def authority(self) -> str:
        """Return host and port as a URL has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Return the URL."""
        return f"{self.scheme}://{self.authority}{self.prefix}"


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret is kept: its scheme, the place there, and (in a vault) the field."""

    scheme: str
    place: str
    field: str = ""

    def __str__(self) -> str:
        """Return the reference as it is written."""
        return f"{self.scheme}://{self.place}" + (f"#{self.field}" if self.field else "")


@dataclass(frozen=True, slots=True)
class Account:
    """An identity outside, as a handle.

    `rules` say what may be asked, each a method (``*``: any) and a pattern of paths below the destination; `principals` may use it (none
    named: whoever the policy allows); `label` is that of everything it answers; `daily` is how often it may be used a day (0: any number).
    """

    name: str
    kind: AccountKind
    destination: Destination
    reference: Reference
    label: Label
    rules: tuple[str, ...] = ("GET **",)
    username: str = ""
    header: str = ""
    headers: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()
    daily: int = 0
    authorities: str = ""
    """The path of a file of certificates to trust beside the system's own, empty for none."""

    def document(self) -> dict[str, Any]:
        """Return what is kept and shown of it."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "url": str(self.destination),
            "secret": str(self.reference),
            "origin": self.label.origin.name.lower(),
            "sensitivity": self.label.sensitivity.name.lower(),
            "rules": list(self.rules),
            "username": self.username,
            "header": self.header,
            "headers": sorted(self.headers),
            "principals": sorted(self.principals),
            "daily": self.daily,
            "authorities": self.authorities,
        }


def parse_account(document: Mapping[str, Any]) -> Account:
    """Return the account of a document (`Account.document`), or of what somebody asks to have. Raises `AccountInvalid`."""
    name = _checked_name(str(document["name"]))
    kind = _kind(str(document["kind"]))
    try:
        label = parse_label(document.get("origin", "external"), document.get("sensitivity", "internal"))
    except ValueError as error:
        raise AccountInvalid(name, str(error)) from None
    account = Account(
        name,
        kind,
        parse_destination(str(document["url"])),
        parse_reference(str(document["secret"])),
        label,
        tuple(document.get("rules") or ("* **" if kind is AccountKind.GIT else "GET **",)),
        document.get("username", ""),
        document.get("header", "").lower(),
        frozenset(each.lower() for each in document.get("headers", ())),
        frozenset(document.get("principals", ())),
        int(document.get("daily", 0)),
        document.get("authorities", ""),
    )
    _check_presenting(account)
    for rule in account.rules:
        parse_rule(rule)
    return account


def parse_destination(text: str) -> Destination:
    """Return the destination a URL pins. Raises `AccountInvalid`."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise AccountInvalid(text, "that is no URL") from None
    host = (parts.hostname or "").lower()
    if parts.scheme not in _PORTS or not host:
        raise AccountInvalid(text, "a destination is https://HOST[:PORT][/PATH]")
    if parts.username is not None or parts.password is not None:
        raise AccountInvalid(f"{parts.scheme}://{host}", "a URL with a user or a password: name the secret by a reference instead")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise AccountInvalid(text, "a destination has no query and no fragment")
    if not (_is_ipv6(host) or set(host) <= _HOST) or host.startswith((".", "-")):
        raise AccountInvalid(text, "the host is written in letters, digits, hyphens and dots (an international name in its xn-- form)")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise AccountInvalid(text, "plain HTTP would show the secret to everybody on the way: use https")
    prefix = parts.path.rstrip("/")
    if prefix:
        check_path(prefix)
    return Destination(parts.scheme, host, port or _PORTS[parts.scheme], prefix)


def parse_reference(text: str) -> Reference:
    """Return the reference to a secret. Raises `AccountInvalid`, which repeats nothing of a text that could be the secret itself."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise AccountInvalid("the secret", "is named by env://NAME, file:///PATH, systemd://NAME or vault://MOUNT/PATH#FIELD")
    if any(ord(letter) < 0x21 or ord(letter) == 0x7F for letter in rest) or len(rest) > LONGEST_PATH:
        raise AccountInvalid(f"{scheme}://", "a reference has no spaces and no control characters")
    if scheme == "env" and (not rest or not set(rest) <= _VARIABLE or rest[0].isdigit()):
        raise AccountInvalid("env://", "is followed by the name of a variable")
    if scheme == "file" and (not rest.startswith("/") or ".." in rest.split("/")):
        raise AccountInvalid("file://", "is followed by an absolute path without ..")
    if scheme == "systemd" and (not rest or not set(rest.lower()) <= _NAME or rest.startswith(".")):
        raise AccountInvalid("systemd://", "is followed by the name of a credential, as LoadCredential= gives it")
    if scheme == "vault":
        return _parse_vault(rest)
    return Reference(scheme, rest)


def _parse_vault(rest: str) -> Reference:
    place, _, name = rest.partition("#")
    parts = place.split("/")
    if len(parts) < 2 or not name or any(part in ("", ".", "..") for part in parts) or "?" in rest or "%" in rest:
        raise AccountInvalid("vault://", "is followed by MOUNT/PATH#FIELD of a version 2 key-value store")
    return Reference("vault", place, name)


def check_path(path: str) -> str:
    """Return the path decoded, without its first slash. Raises `AccountInvalid` for what a server could read as another one."""
    if not path.startswith("/") or len(path) > LONGEST_PATH or not set(path) <= _PATH:
        raise AccountInvalid(path[:80], "a path begins with / and holds what RFC 3986 lets a path hold; a query is an argument of its own")
    decoded = path.encode()
    for _ in range(_DECODINGS):
        _check_segments(path, decoded)
        before, decoded = decoded, unquote_to_bytes(decoded)
        if decoded == before:
            return decoded[1:].decode("utf-8", "surrogateescape")
        if decoded.count(b"/") != before.count(b"/"):
            raise AccountInvalid(path[:80], "it hides a slash")
    raise AccountInvalid(path[:80], "it is encoded more than once")


def _check_segments(path: str, decoded: bytes) -> None:
    if any(byte < 0x20 or byte == 0x7F for byte in decoded) or b"\\" in decoded:
        raise AccountInvalid(path[:80], "it hides a backslash or a control character")
    segments = decoded[1:].split(b"/")
    if any(segment.partition(b";")[0] in (b".", b"..") for segment in segments) or b"" in segments[:-1]:
        raise AccountInvalid(path[:80], "it has an empty segment or a dot segment")


def parse_rule(rule: str) -> tuple[str, str]:
    """Return method and pattern of a rule such as ``GET repos/*/issues``. Raises `AccountInvalid`."""
    method, _, pattern = rule.partition(" ")
    pattern = pattern.strip().strip("/")
    if method not in (*METHODS, "FETCH", "PUSH", "*"):
        raise AccountInvalid(rule[:80], f"a rule is a method and a pattern: {', '.join(METHODS)}, FETCH, PUSH or *")
    try:
        parse_pattern(pattern)
    except PatternInvalid as error:
        raise AccountInvalid(rule[:80], str(error)) from None
    return method, pattern


def _check_presenting(account: Account) -> None:
    if account.kind is AccountKind.HEADER and (
        not account.header or not set(account.header) <= _TOKEN or account.header in FORBIDDEN_HEADERS | HEADERS
    ):
        raise AccountInvalid(account.name, "of kind header needs the name of the header that carries the secret, such as x-api-key")
    if account.kind in (AccountKind.BASIC, AccountKind.GIT) and not account.username:
        raise AccountInvalid(account.name, f"of kind {account.kind.value} needs a username")
    if any(not 0x20 < ord(letter) < 0x7F or letter == ":" for letter in account.username):
        raise AccountInvalid(account.name, "the username has characters that it cannot be sent with")
    forbidden = account.headers & FORBIDDEN_HEADERS
    if forbidden or not all(set(name) <= _TOKEN and name for name in account.headers):
        raise AccountInvalid(account.name, f"requests cannot be let set {', '.join(sorted(forbidden)) or 'such headers'}")
    if account.daily < 0:
        raise AccountInvalid(account.name, "a daily budget is no negative number")
    if account.authorities and not account.authorities.startswith("/"):
        raise AccountInvalid(account.name, "the file of certificates is named by an absolute path")


def _checked_name(name: str) -> str:
    if not name or len(name) > 64 or not set(name) <= _NAME or not name[0].isalnum():
        raise AccountInvalid(name[:64], "a name is up to 64 lower-case letters, digits, dots, hyphens and underscores")
    return name


def _kind(text: str) -> AccountKind:
    try:
        return AccountKind(text)
    except ValueError:
        raise AccountInvalid(text[:20], f"a kind is one of {', '.join(kind.value for kind in AccountKind)}") from None


def _is_ipv6(host: str) -> bool:
    return ":" in host and set(host) <= frozenset("0123456789abcdef:.")
