"""Requests to accounts: everything about one that can be judged without sending it.

1. No request chooses a host; what a request chooses is a path that a rule of the account names, a query, a body.
2. Headers come from a closed list, which the account may extend but not by the ones that carry credentials or move the request.
3. Nothing of ours travels: a request that carries a lease's or a principal's secret is refused (no token passthrough).
4. The digest is over exactly what would be sent, and where: an approval of one request releases no other.
5. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote_to_bytes

from trust.accounts import FORBIDDEN_HEADERS, HEADERS, LONGEST_PATH, METHODS, Account, AccountKind, check_path, parse_rule
from trust.canonical import canonical
from trust.errors import AccountInvalid
from trust.policy.patterns import matches_any
from trust.tokens import LEASE_PREFIX, MOUNT_PREFIX, PRINCIPAL_PREFIX

READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that ask and do not change (RFC 9110, 9.2.1)."""
MOST_PAIRS = 64
_SECRETS = (f"{LEASE_PREFIX}.", f"{MOUNT_PREFIX}.", f"{PRINCIPAL_PREFIX}.")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of an account. The path is as it travels; the body's bytes are elsewhere, here is their SHA-256."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body_sha256: str = ""
    size: int = 0

    @property
    def target(self) -> str:
        """Return path and query as they stand in the request line, below the destination."""
        pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query)
        return f"{self.path}?{pairs}" if pairs else self.path


def check_request(account: Account, request: Request) -> None:
    """Return when the account lets this be asked. Raises `AccountInvalid`, which says what it does let."""
    path = check_path(request.path)
    if account.kind is AccountKind.GIT:
        raise AccountInvalid(account.name, "is an account for git: use fetch and push")
    if request.method not in METHODS:
        raise AccountInvalid(request.method[:20], f"no method of an account: {', '.join(METHODS)}")
    if not _allows(account, request.method, path):
        raise AccountInvalid(f"{request.method} {request.path[:200]}", f"the account {account.name} lets only {'; '.join(account.rules)}")
    if len(request.query) > MOST_PAIRS or sum(len(name) + len(value) for name, value in request.query) > LONGEST_PATH:
        raise AccountInvalid("the query", f"has more than {MOST_PAIRS} parts or {LONGEST_PATH} characters")
    for name, value in request.headers.items():
        _check_header(account, name, value)
    _check_no_secret(request)


def check_remote(account: Account, path: str, *, push: bool) -> None:
    """Return when a git account lets this repository be fetched from, or pushed to. Raises `AccountInvalid`."""
    decoded = check_path(path)
    if account.kind is not AccountKind.GIT:
        raise AccountInvalid(account.name, "is no account for git: add one of kind git")
    verb = "PUSH" if push else "FETCH"
    if not _allows(account, verb, decoded):
        raise AccountInvalid(f"{verb} {path[:200]}", f"the account {account.name} lets only {'; '.join(account.rules)}")


def check_principal(account: Account, names: frozenset[str]) -> None:
    """Return when somebody of these names may use the account. Raises `AccountInvalid`."""
    if account.principals and account.principals.isdisjoint(names):
        raise AccountInvalid(account.name, f"is for {', '.join(sorted(account.principals))}")


def request_digest(account: Account, request: Request) -> str:
    """Return the digest of exactly what would be sent, and where."""
    sent = {
        "account": account.name,
        "destination": str(account.destination),
        "method": request.method,
        "path": request.path,
        "query": [list(pair) for pair in request.query],
        "headers": dict(request.headers),
        "body": request.body_sha256,
    }
    return hashlib.sha256(b"nas-egress-v1\0" + canonical(sent).encode()).hexdigest()


def holds_secret(data: bytes) -> bool:
    """Tell whether bytes hold something that reads like a secret of this appliance."""
    return any(mark.encode() in data for mark in _SECRETS)


def _allows(account: Account, method: str, path: str) -> bool:
    given = path.rstrip("/").encode("utf-8", "surrogateescape")
    rules = (parse_rule(rule) for rule in account.rules)
    return any(named in ("*", method) and matches_any((pattern,), given) for named, pattern in rules)


def _check_header(account: Account, name: str, value: str) -> None:
    lowered = name.lower()
    if lowered == account.header or lowered in FORBIDDEN_HEADERS or lowered not in HEADERS | account.headers:
        known = ", ".join(sorted(HEADERS | account.headers))
        raise AccountInvalid(f"the header {name[:80]!r}", f"is not one that a request to {account.name} may set: {known}")
    if len(value) > LONGEST_PATH or any(not 0x20 <= ord(letter) < 0x7F for letter in value):
        raise AccountInvalid(f"the header {name[:80]!r}", "has a value that no header can have")


def _check_no_secret(request: Request) -> None:
    texts = [request.path, *(text for pair in request.query for text in pair), *request.headers.values()]
    if any(holds_secret(unquote_to_bytes(text)) for text in texts):
        raise AccountInvalid("the request", "carries a secret of this appliance, which goes nowhere")
