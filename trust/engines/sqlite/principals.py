"""Principals and their tokens as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from trust.canonical import canonical
from trust.engines.sqlite.database import Database
from trust.errors import Taken, Unknown
from trust.model import Principal, PrincipalKind, PrincipalName, Token, TokenId
from trust.secret import Secret

_PRINCIPAL = "SELECT name, kind, created, disabled, attributes FROM principals"
_TOKEN = "SELECT id, principal, label, created, expires, revoked, digest FROM tokens"  # noqa: S105 - a statement, no password


class Principals:
    """See `trust.contract.PrincipalRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, principal: Principal) -> None:
        """See the contract."""
        values = (principal.name, principal.kind.value, principal.created, principal.disabled, canonical(dict(principal.attributes)))
        try:
            self._database.change("INSERT INTO principals VALUES(?, ?, ?, ?, ?)", values)
        except apsw.ConstraintError as error:
            raise Taken(principal.name, "there is a principal of this name") from error

    def find(self, name: str) -> Principal:
        """See the contract."""
        rows = self._database.rows(f"{_PRINCIPAL} WHERE name = ?", (name,))
        if not rows:
            raise Unknown(name, "no such principal")
        return _principal(rows[0])

    def all(self) -> Sequence[Principal]:
        """See the contract."""
        return [_principal(row) for row in self._database.rows(f"{_PRINCIPAL} ORDER BY name")]

    def disable(self, name: str) -> None:
        """See the contract."""
        self._database.change("UPDATE principals SET disabled = 1 WHERE name = ?", (name,))

    def set_attributes(self, name: str, attributes: Mapping[str, str]) -> None:
        """See the contract."""
        self._database.change("UPDATE principals SET attributes = ? WHERE name = ?", (canonical(dict(attributes)), name))


class Tokens:
    """See `trust.contract.TokenRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, token: Token, digest: Secret) -> None:
        """See the contract."""
        values = (token.id, token.principal, token.label, token.created, token.expires, token.revoked, digest.reveal())
        try:
            self._database.change(
                "INSERT INTO tokens(id, principal, label, created, expires, revoked, digest) VALUES(?, ?, ?, ?, ?, ?, ?)", values
            )
        except apsw.ConstraintError as error:
            raise Taken(token.id, "there is a token of this id") from error

    def find(self, token: TokenId) -> tuple[Token, Secret]:
        """See the contract."""
        rows = self._database.rows(f"{_TOKEN} WHERE id = ?", (token,))
        if not rows:
            raise Unknown("token", "no such token")
        return _token(rows[0]), Secret(rows[0][6])

    def all(self, principal: str | None = None) -> Sequence[Token]:
        """See the contract."""
        rows = self._database.rows(f"{_TOKEN} WHERE ?1 IS NULL OR principal = ?1 ORDER BY number", (principal,))
        return [_token(row) for row in rows]

    def revoke(self, token: TokenId, now: int) -> None:
        """See the contract."""
        self._database.change("UPDATE tokens SET revoked = coalesce(revoked, ?) WHERE id = ?", (now, token))


def _principal(row: tuple[Any, ...]) -> Principal:
    name, kind, created, disabled, attributes = row
    return Principal(PrincipalName(name), PrincipalKind(kind), created, bool(disabled), json.loads(attributes))


def _token(row: tuple[Any, ...]) -> Token:
    token, principal, label, created, expires, revoked = row[:6]
    return Token(TokenId(token), PrincipalName(principal), label, created, expires, revoked)
