"""The description of the API (OpenAPI 3.1), made from the same table the door serves from. Pure.

1. What is described is what is served: a route and its place in the document come from one value.
2. Operations are ordered by path and method, so that two descriptions of one API are equal byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interfaces.http.listing import DIRECTORY_SCHEMA, MATCHES_SCHEMA, MAX_PAGE, NODE_SCHEMA, PAGE
from interfaces.http.routes import BODY_METHODS, Route, read_route
from interfaces.port import Document
from interfaces.web.problems import PROBLEM_SCHEMA

FILES_PATH = "/v1/branches/{branch}/files/{path}"

_PROBLEM = {"$ref": "#/components/responses/Problem"}
_NODE = {"$ref": "#/components/schemas/Node"}
_DIRECTORY = {"$ref": "#/components/schemas/Directory"}
_MATCHES = {"$ref": "#/components/schemas/Matches"}


def describe_api(operations: Mapping[str, Document], version: str) -> Document:
    """Return the OpenAPI document for a table of operations, with what the door itself adds: files, events and health."""
    paths: dict[str, dict[str, Any]] = {}
    for name, document in operations.items():
        route = read_route(name, document)
        paths.setdefault(route.path, {})[route.method.lower()] = _describe_operation(route, document)
    paths |= {FILES_PATH: _FILES, "/v1/events": _EVENTS, **_PUBLIC}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent NAS", "version": version, "summary": "A lease and a branch for every run of an agent."},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"basic": []}],
        "paths": {path: dict(sorted(paths[path].items())) for path in sorted(paths)},
        "components": {
            "securitySchemes": _SCHEMES,
            "schemas": {"Problem": PROBLEM_SCHEMA, "Node": NODE_SCHEMA, "Directory": DIRECTORY_SCHEMA, "Matches": MATCHES_SCHEMA},
            "responses": {"Problem": _content("What went wrong.", {"$ref": "#/components/schemas/Problem"}, "application/problem+json")},
        },
    }


def _describe_operation(route: Route, document: Document) -> Document:
    described: Document = {
        "operationId": route.operation,
        "summary": document["summary"],
        "tags": document.get("tags", [route.operation.partition(".")[0]]),
        "parameters": [*_path_parameters(route), *_query_parameters(route), *(_EFFECT_HEADERS if route.effect else [])],
        "responses": {str(route.status): _content("Done.", document.get("response", {"type": "object"})), "default": _PROBLEM},
    }
    if route.method in BODY_METHODS and (body := _body_schema(route)):
        described["requestBody"] = {"required": bool(body.get("required")), "content": {"application/json": {"schema": body}}}
    return described


def _path_parameters(route: Route) -> list[Document]:
    return [_parameter("path", name, route.properties.get(name, {"type": "string"}), required=True) for name in route.in_path]


def _query_parameters(route: Route) -> list[Document]:
    if route.method in BODY_METHODS:
        return []
    required = route.parameters.get("required", ())
    names = [name for name in route.properties if name not in route.in_path]
    return [_parameter("query", name, route.properties[name], required=name in required) for name in names]


def _body_schema(route: Route) -> Document:
    properties = {name: schema for name, schema in route.properties.items() if name not in {*route.in_path, "if_match", "idempotency_key"}}
    if not properties:
        return {}
    required = [name for name in route.parameters.get("required", ()) if name in properties]
    extra = {"additionalProperties": False} if route.parameters.get("additionalProperties") is False else {}
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), **extra}


def _parameter(place: str, name: str, schema: Document, *, required: bool = False, description: str = "") -> Document:
    text = description or schema.get("description", "")
    return {"in": place, "name": name, "required": required, "schema": schema, **({"description": text} if text else {})}


def _content(description: str, schema: Document, media: str = "application/json") -> Document:
    return {"description": description, "content": {media: {"schema": schema}}}


_SCHEMES: Document = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The secret of a lease or a token."},
    "basic": {"type": "http", "scheme": "basic", "description": "A lease id or a principal's name, and its secret."},
}
_TEXT: Document = {"type": "string"}
_NUMBER: Document = {"type": "integer"}
_BYTES: Document = {"application/octet-stream": {"schema": {}}}
_KEY = _parameter(
    "header", "Idempotency-Key", {"type": "string", "maxLength": 255}, description="The same key and request: the same answer, done once."
)
_EFFECT_HEADERS = [_KEY]
_CONDITIONS = [
    _parameter("header", "If-Match", _TEXT, description="Only when the file has this entity tag."),
    _parameter("header", "If-None-Match", _TEXT, description="* : only when there is no file."),
]
_PLACE = [
    _parameter("path", "branch", _TEXT, required=True, description="The branch as one segment: a slash in it is %2F."),
    _parameter(
        "path", "path", _TEXT, required=True, description="Percent-encoded names between slashes, of any bytes; empty for the root."
    ),
]
_PARENTS = _parameter("query", "parents", {"type": "string", "enum": ["1"]}, description="1: make the directories above.")
_PAGE = "Names on a page; a search has at most 1,000 matches, 100 when it does not say."
_MODE = _parameter("query", "mode", {"type": "string", "pattern": "^[0-7]{1,4}$"}, description="Permission bits, octal.")

_FILES: Document = {
    "parameters": _PLACE,
    "get": {
        "operationId": "file.read",
        "summary": "Read a file; with ?list a directory, with ?stat what a name stands for, with ?search what is below it",
        "tags": ["file"],
        "parameters": [
            _parameter("query", "list", _TEXT, description="List the directory as a document."),
            _parameter("query", "stat", _TEXT, description="Describe the node as a document."),
            _parameter("query", "search", _TEXT, description="Find lines that contain this text in the files below; empty: find paths."),
            _parameter("query", "glob", _TEXT, description="search: only paths that fit this pattern, such as *.py or src/**/test_*."),
            _parameter("query", "ignore_case", {"type": "string", "enum": ["1"]}, description="search: 1: A is a."),
            _parameter("query", "at", _TEXT, description="Read the tree of this commit or snapshot."),
            _parameter("query", "cursor", _TEXT, description="Continue after the page that gave this as next."),
            _parameter("query", "limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": PAGE}, description=_PAGE),
            _parameter("header", "Range", _TEXT, description="bytes=first-last, several of them with commas between."),
            *_CONDITIONS,
        ],
        "responses": {
            "200": {
                "description": "The content, the directory, the node or the matches.",
                "content": {**_BYTES, "application/json": {"schema": {"anyOf": [_DIRECTORY, _MATCHES, _NODE]}}},
            },
            "206": {"description": "Part of the content, or several parts.", "content": {**_BYTES, "multipart/byteranges": {"schema": {}}}},
            "304": {"description": "The client has it."},
            "default": _PROBLEM,
        },
    },
    "put": {
        "operationId": "file.put",
        "summary": "Put a whole file at once",
        "tags": ["file"],
        "parameters": [_PARENTS, _MODE, *_CONDITIONS],
        "requestBody": {"required": True, "content": _BYTES},
        "responses": {"200": _content("Replaced.", _NODE), "201": _content("Created.", _NODE), "default": _PROBLEM},
    },
    "delete": {
        "operationId": "file.delete",
        "summary": "Remove a file or an empty directory",
        "tags": ["file"],
        "parameters": _CONDITIONS,
        "responses": {"204": {"description": "Removed."}, "default": _PROBLEM},
    },
    "post": {
        "operationId": "file.change",
        "summary": "Append to a file, copy, move, or make a directory or a symlink",
        "tags": ["file"],
        "parameters": [
            _parameter("query", "op", {"type": "string", "enum": ["append", "copy", "mkdir", "move", "symlink"]}, required=True),
            _PARENTS,
            _MODE,
            *_CONDITIONS,
        ],
        "requestBody": {
            "required": False,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "to": {"type": "string", "description": "copy, move: where to, a percent-encoded path of the branch."},
                            "replace": {"type": "boolean", "default": False, "description": "copy, move: replace a file there."},
                            "target": {"type": "string", "description": "symlink: where it points."},
                        },
                    }
                },
                **_BYTES,
            },
        },
        "responses": {"200": _content("Done.", _NODE), "201": _content("Created.", _NODE), "default": _PROBLEM},
    },
}

_EVENTS: Document = {
    "get": {
        "operationId": "event.follow",
        "summary": "Follow what happens, as server-sent events; the id of an event is the sequence of its record",
        "tags": ["event"],
        "parameters": [
            _parameter("query", "after", _NUMBER, description="Begin after this record; -1 or nothing: from now on."),
            _parameter("header", "Last-Event-ID", _TEXT, description="Resume after this event."),
        ],
        "responses": {
            "200": {"description": "Events, without end.", "content": {"text/event-stream": {"schema": _TEXT}}},
            "default": _PROBLEM,
        },
    }
}


def _public(operation: str, summary: str, schema: Document, *others: str) -> Document:
    answers = {status: _content("Not now.", schema) for status in others}
    responses = {"200": _content("The answer.", schema), **answers, "default": _PROBLEM}
    return {"get": {"operationId": operation, "summary": summary, "tags": ["service"], "security": [], "responses": responses}}


_PUBLIC = {
    "/healthz": _public("service.health", "Tell that the process answers", {"type": "object"}),
    "/readyz": _public("service.ready", "Tell whether state is open and recovered", {"type": "object"}, "503"),
    "/openapi.json": _public("service.describe", "Return this document", {"type": "object"}),
}
