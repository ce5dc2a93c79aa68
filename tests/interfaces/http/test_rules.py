"""The pure rules: names, conditions, JSON limits, and what the package may import."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import interfaces
from interfaces.faults import Fault, Kind
from interfaces.http.listing import render_nanoseconds
from interfaces.http.routes import Table, read_query, read_route
from tests.interfaces.http.room import OPERATIONS


@given(st.sampled_from(["GET", "HEAD", "POST", "DELETE", "BREW"]), st.binary(max_size=30).map(lambda raw: b"/v1/echoes/" + raw))
@example("GET", b"/v1/echoes/%ff")
def test_any_path_finds_an_operation_or_a_fault(method: str, path: bytes) -> None:
    table = Table(read_route(name, document) for name, document in OPERATIONS.items())
    try:
        route, arguments = table.match(method, path)
    except Fault as fault:
        assert fault.kind in {Kind.NOT_FOUND, Kind.INVALID, Kind.UNSUPPORTED}
    else:
        assert route.method == ("GET" if method == "HEAD" else method)
        assert set(arguments) == set(route.in_path)


@given(st.binary(max_size=40))
def test_any_query_is_arguments_or_a_fault(query: bytes) -> None:
    try:
        arguments = read_query(read_route("echo.show", OPERATIONS["echo.show"]), query)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert all(isinstance(name, str) for name in arguments)


@given(st.integers(-(2**80), 2**80))
@example(0)
def test_any_time_can_be_told(value: int) -> None:
    assert len(render_nanoseconds(value)) == 30


@pytest.mark.parametrize(
    "name",
    ["http/listing", "http/openapi", "http/routes", "web/conditions", "web/family", "web/guard", "web/limits", "web/names", "web/problems"],
)
def test_rules_do_nothing_but_judge(name: str) -> None:
    path = Path(str(interfaces.__file__)).parent / f"{name}.py"
    assert not imports_of(path) & {
        "os",
        "sqlite3",
        "time",
        "random",
        "secrets",
        "socket",
        "subprocess",
        "threading",
        "logging",
        "asyncio",
        "starlette",
    }


def imports_of(path: Path) -> set[str]:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    return imported


def test_no_door_imports_a_context_or_the_composition() -> None:
    folder = Path(str(interfaces.__file__)).parent
    for path in folder.rglob("*.py"):
        assert not imports_of(path) & {"store", "trust", "memory", "sync", "estate", "flows", "nasd"}, path
