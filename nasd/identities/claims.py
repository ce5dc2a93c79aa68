"""What a JWT whose signature was right says, and whether it says it to us. Pure: the time is an argument.

1. Issuer and audience are compared letter by letter. A token for somebody else is worth nothing, however true it is.
2. A token without an end, with one further away than `LONGEST`, or from a future beyond `SKEW` is refused: nobody can take a JWT back.
3. A header that is critical (``crit``) is refused: none is understood here. Keys and addresses of keys in a header are never looked at.
4. Only what the settings declare leaves here: the principal's name, declared attributes, declared roles.
5. What is refused says what is wrong with it: whoever presents a JWT can read it anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nasd.identities.issuers import Issuer

SKEW = 60
"""How many seconds two clocks may differ."""
LONGEST = 24 * 3600
"""The longest life of a JWT, in seconds."""
MAX_TEXT = 255
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})


class Unbelievable(Exception):
    """A JWT that is not believed. The text says why."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What an issuer says of somebody: who, made when, good until when, what sort of someone, and what of the rest was declared."""

    issuer: str
    subject: str
    name: str
    made: int
    until: int
    kind: str = "human"
    attributes: Mapping[str, str] = field(default_factory=dict)
    roles: tuple[str, ...] = ()


def check_header(issuer: Issuer, header: Mapping[str, Any]) -> None:
    """Return when a header is of the one plain form. Raises `Unbelievable`."""
    if "crit" in header:
        raise Unbelievable("a critical header is not understood")
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in issuer.algorithms:
        raise Unbelievable(f"its algorithm is not one of {', '.join(issuer.algorithms)}")
    if str(header.get("typ", "")).lower() not in _TYPES:
        raise Unbelievable("it is a token of another type")


def judge_claims(issuer: Issuer, claims: Mapping[str, Any], now: int, *, nonce: str = "") -> Assertion:
    """Return what the claims assert to us at `now`; with `nonce`, only when they answer that question. Raises `Unbelievable`."""
    if claims.get("iss") != issuer.issuer:
        raise Unbelievable("it is of another issuer")
    _judge_audience(issuer, claims)
    made, until = _judge_times(claims, now)
    if nonce and claims.get("nonce") != nonce:
        raise Unbelievable("it answers another question (nonce)")
    subject = _text(claims, "sub")
    named = issuer.subjects.get(subject)
    name = named if named is not None else issuer.prefix + _text(claims, issuer.principal)
    attributes = {attribute: _flat(claims.get(claim)) for attribute, claim in sorted(issuer.attributes.items())}
    return Assertion(
        issuer.name,
        subject,
        name,
        made,
        until,
        "service" if _parties(claims) & set(issuer.services) else issuer.kind,
        {attribute: text for attribute, text in attributes.items() if text},
        _roles(issuer, claims),
    )


def _judge_audience(issuer: Issuer, claims: Mapping[str, Any]) -> None:
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if issuer.audience not in audiences:
        raise Unbelievable(f"it is not for {issuer.audience}")
    parties = _parties(claims)
    if issuer.clients and not (parties and parties <= set(issuer.clients)):
        raise Unbelievable("it was made for a program that is not declared")


def _parties(claims: Mapping[str, Any]) -> set[str]:
    """Return the programs that a token was made for: RFC 9068 calls it `client_id`, OpenID Connect `azp`; both may be there."""
    return {str(claims[name]) for name in ("azp", "client_id") if name in claims}


def _judge_times(claims: Mapping[str, Any], now: int) -> tuple[int, int]:
    until, made = _time(claims, "exp"), _time(claims, "iat")
    begins = _time(claims, "nbf") if "nbf" in claims else made
    if now >= until + SKEW:
        raise Unbelievable("it has expired")
    if made > now + SKEW or begins > now + SKEW:
        raise Unbelievable("it is not valid yet; compare the clocks")
    if until - made > LONGEST:
        raise Unbelievable(f"it lives longer than {LONGEST // 3600} hours")
    return made, until + SKEW


def _time(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 53:
        raise Unbelievable(f"it does not say {name}")
    return int(value)


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT or not value.isprintable():
        raise Unbelievable(f"its claim {name} names nobody")
    return value


def _flat(value: object) -> str:
    """Return a claim as the text an attribute has; empty for what is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(text for text in map(_flat, value) if text)[:MAX_TEXT]
    return str(value)[:MAX_TEXT] if isinstance(value, str | int) and str(value).isprintable() else ""


def _roles(issuer: Issuer, claims: Mapping[str, Any]) -> tuple[str, ...]:
    value = claims.get(issuer.roles_claim) if issuer.roles_claim else None
    held = value if isinstance(value, list) else str(value).split() if isinstance(value, str) else []
    return tuple(sorted({issuer.roles[each] for each in held if isinstance(each, str) and each in issuer.roles}))
