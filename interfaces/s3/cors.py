"""Which pages of other origins may use a bucket from a browser: the rules, and what they answer. Pure.

1. A rule names origins, methods and headers; the first rule that fits a request counts, and without one a browser keeps the page away.
2. Rules open a bucket for pages, never for strangers: each request still needs a signature, which a browser has only if its page was
   given one. No answer ever allows credentials.
3. A pattern holds at most one ``*``, which stands for anything. Origins and methods are compared exactly, names of headers in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

from interfaces.s3.faults import S3Fault
from interfaces.s3.markup import document, group, parse, tag, text_of

MAX_RULES = 100
METHODS = ("GET", "PUT", "HEAD", "POST", "DELETE")

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CorsRule:
    """One rule. `max_age` is in seconds, None where browsers decide; `id` is its owner's."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    max_age: int | None = None
    id: str = ""


def parse_cors(body: bytes) -> tuple[CorsRule, ...]:
    """Return the rules of a ``CORSConfiguration`` document. Raises ``MalformedXML``, ``InvalidRequest``."""
    rules = tuple(_read_rule(element) for element in parse(body, "CORSConfiguration").findall("CORSRule"))
    if not 0 < len(rules) <= MAX_RULES:
        raise S3Fault("MalformedXML")
    return rules


def render_cors(rules: Sequence[CorsRule]) -> bytes:
    """Return the document of rules."""
    return document("CORSConfiguration", *(_render_rule(rule) for rule in rules))


def rule_fields(rule: CorsRule) -> dict[str, Any]:
    """Return a rule as a JSON object."""
    return {
        "origins": list(rule.origins),
        "methods": list(rule.methods),
        "headers": list(rule.headers),
        "exposed": list(rule.exposed),
        "max_age": rule.max_age,
        "id": rule.id,
    }


def decode_rule(fields: Mapping[str, Any]) -> CorsRule:
    """Return the rule that `rule_fields` told."""
    origins, methods, headers, exposed = (tuple(fields[name]) for name in ("origins", "methods", "headers", "exposed"))
    return CorsRule(origins, methods, headers, exposed, fields["max_age"], fields["id"])


def find_rule(rules: Sequence[CorsRule], origin: str, method: str, requested: Sequence[str] = ()) -> CorsRule | None:
    """Return the first rule that lets pages of `origin` use `method` with the headers `requested`."""
    return next((rule for rule in rules if _fits(rule, origin, method, requested)), None)


def requested_headers(value: str) -> list[str]:
    """Return the names in an ``Access-Control-Request-Headers``."""
    return [name.strip().lower() for name in value.split(",") if name.strip()]


def allow(rule: CorsRule, origin: str) -> Headers:
    """Return the headers by which an answer lets a page of `origin` have it."""
    shown = "*" if "*" in rule.origins else origin
    headers = [
        ("access-control-allow-origin", shown),
        ("access-control-allow-methods", ", ".join(rule.methods)),
        ("vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"),
    ]
    if rule.exposed:
        headers.append(("access-control-expose-headers", ", ".join(rule.exposed)))
    if rule.max_age is not None:
        headers.append(("access-control-max-age", str(rule.max_age)))
    return headers


def allow_preflight(rule: CorsRule, origin: str, requested: Sequence[str]) -> Headers:
    """Return the headers that answer a preflight."""
    return allow(rule, origin) + ([("access-control-allow-headers", ", ".join(requested))] if requested else [])


def _fits(rule: CorsRule, origin: str, method: str, requested: Sequence[str]) -> bool:
    return (
        method in rule.methods
        and any(_matches(pattern, origin) for pattern in rule.origins)
        and all(any(_matches(pattern.lower(), name) for pattern in rule.headers) for name in requested)
    )


def _matches(pattern: str, text: str) -> bool:
    head, star, tail = pattern.partition("*")
    if not star:
        return text == pattern
    return len(text) >= len(head) + len(tail) and text.startswith(head) and text.endswith(tail)


def _read_rule(element: Element) -> CorsRule:
    origins, methods, headers, exposed = (
        tuple(child.text or "" for child in element.findall(name))
        for name in ("AllowedOrigin", "AllowedMethod", "AllowedHeader", "ExposeHeader")
    )
    if not origins or not methods:
        raise S3Fault("MalformedXML")
    for method in methods:
        if method not in METHODS:
            raise S3Fault("InvalidRequest", f"Found unsupported HTTP method in CORS config. Unsupported method is {method}")
    for pattern in (*origins, *headers):
        if pattern.count("*") > 1:
            raise S3Fault("InvalidRequest", f'AllowedOrigin and AllowedHeader can not have more than one wildcard: "{pattern}"')
    return CorsRule(origins, methods, headers, exposed, _seconds(text_of(element, "MaxAgeSeconds")), text_of(element, "ID") or "")


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise S3Fault("MalformedXML")
    return int(text)


def _render_rule(rule: CorsRule) -> str:
    lists = (
        ("AllowedOrigin", rule.origins),
        ("AllowedMethod", rule.methods),
        ("AllowedHeader", rule.headers),
        ("ExposeHeader", rule.exposed),
    )
    parts = [tag("ID", rule.id)] if rule.id else []
    parts += [tag(name, value) for name, values in lists for value in values]
    return group("CORSRule", *parts, *([tag("MaxAgeSeconds", rule.max_age)] if rule.max_age is not None else []))
