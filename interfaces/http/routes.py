"""From a request line to an operation and its arguments. Pure.

1. A route is a template of segments, ``/v1/runs/{run}/end``; a request line is matched segment by segment before anything is decoded,
   so that a branch called ``a/b`` is one segment, ``a%2Fb``.
2. An argument has one place: in the path when the template names it, in the body of POST, PUT and PATCH, in the query of the others.
3. The query has only text; the operation's own schema says which arguments are numbers, truth values or lists. Everything else about them
   is for whoever carries the operation out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from interfaces.faults import Fault, Kind
from interfaces.port import Document
from interfaces.web.names import decode_text
from interfaces.web.problems import Refusal

BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Route:
    """One operation with its place in the API."""

    method: str
    path: str
    operation: str
    parameters: Document
    status: int
    effect: bool

    @property
    def in_path(self) -> tuple[str, ...]:
        """Return the arguments the path carries, in order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def properties(self) -> Mapping[str, Any]:
        """Return the schema of each argument."""
        found: Mapping[str, Any] = self.parameters.get("properties", {})
        return found


def read_route(operation: str, document: Document) -> Route:
    """Return the route of an operation as `Control.operations` describes it."""
    return Route(
        method=document["method"],
        path=document["path"],
        operation=operation,
        parameters=document.get("parameters", {}),
        status=document.get("status", 200),
        effect=document.get("effect", False),
    )


class Table:
    """Every route, found by method and path. Immutable once made."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Take all routes. Raises `ValueError` when two have the same method and place."""
        self._by_length: dict[int, list[tuple[tuple[str, ...], dict[str, Route]]]] = {}
        for route in routes:
            self._add(route)

    def match(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
        """Return the route of a request and the arguments in its path. Raises 404 `Kind.NOT_FOUND` and a 405 `Refusal`."""
        segments = raw_path.split(b"/")
        for template, methods in self._by_length.get(len(segments), ()):
            if not _fits(template, segments):
                continue
            wanted = "GET" if method == "HEAD" else method
            if wanted not in methods:
                raise _method_not_allowed(method, methods)
            pairs = zip(template, segments, strict=True)
            return methods[wanted], {name[1:-1]: decode_text(raw) for name, raw in pairs if name.startswith("{")}
        raise Fault(Kind.NOT_FOUND, "the API has nothing at this path", hint="/openapi.json lists what there is")

    def _add(self, route: Route) -> None:
        template = tuple(route.path.split("/"))
        shape = tuple("{}" if part.startswith("{") else part for part in template)
        places = self._by_length.setdefault(len(template), [])
        for other, methods in places:
            if tuple("{}" if part.startswith("{") else part for part in other) == shape:
                if route.method in methods or other != template:
                    raise ValueError(f"{route.operation} and another operation share {route.method} {route.path}")
                methods[route.method] = route
                return
        places.append((template, {route.method: route}))
        # Literal segments win over arguments, whatever the order of the operations.
        places.sort(key=lambda place: [part.startswith("{") for part in place[0]])


def read_query(route: Route, query: bytes) -> dict[str, Any]:
    """Return the arguments a query carries, in the types the operation's schema names. Raises `Kind.INVALID`."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=256)
    except ValueError as error:
        raise Fault(
            Kind.INVALID, f"the query cannot be read: {error}", hint="write name=value&name=value, percent-encoded UTF-8"
        ) from error
    arguments: dict[str, Any] = {}
    for name, text in pairs:
        schema = route.properties.get(name, {})
        if _has_type(schema, "array"):
            arguments.setdefault(name, []).append(_read_value(name, text, schema.get("items", {})))
        elif name in arguments:
            raise Fault(Kind.INVALID, f"the query gives {name} twice", hint=f"give one {name}")
        else:
            arguments[name] = _read_value(name, text, schema)
    return arguments


def join_arguments(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments as one object. Raises `Kind.INVALID` when two places give the same one."""
    joined: dict[str, Any] = {}
    for part in parts:
        if twice := joined.keys() & part.keys():
            raise Fault(Kind.INVALID, f"{min(twice)} is given in two places", hint="give it once, where /openapi.json says")
        joined.update(part)
    return joined


def _fits(template: tuple[str, ...], segments: list[bytes]) -> bool:
    return all(raw if name.startswith("{") else name.encode() == raw for name, raw in zip(template, segments, strict=True))


def _method_not_allowed(method: str, methods: Mapping[str, Route]) -> Refusal:
    allowed = sorted({*methods, "HEAD"} if "GET" in methods else methods)
    return Refusal(
        405, Kind.UNSUPPORTED, f"{method} means nothing here", hint=f"use {' or '.join(allowed)}", headers={"allow": ", ".join(allowed)}
    )


def _has_type(schema: Mapping[str, Any], name: str) -> bool:
    declared = schema.get("type", "string")
    return name in ([declared] if isinstance(declared, str) else declared)


def _read_value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    if _has_type(schema, "boolean"):
        if text.lower() not in {"true", "false", "1", "0", ""}:
            raise Fault(Kind.INVALID, f"{name} is true or false, not {text!r}")
        return text.lower() in {"true", "1", ""}
    if _has_type(schema, "integer"):
        if not text.removeprefix("-").isdecimal() or len(text) > 20:
            raise Fault(Kind.INVALID, f"{name} is a whole number, not {text!r}")
        return int(text)
    return text
