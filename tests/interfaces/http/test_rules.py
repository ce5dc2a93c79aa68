"""The pure rules: names, conditions, JSON limits, and what the package may import."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import interfaces
from interfaces.faults import Fault, Kind
from interfaces.http.listing import render_nanoseconds
from interfaces.http.routes import Table, read_query, read_route
from interfaces.web.conditions import Validators, Verdict, judge, select_range
from interfaces.web.limits import Limits, depth_of, parse_document
from interfaces.web.names import encode_path, split_path
from interfaces.web.problems import Refusal
from tests.interfaces.http.room import OPERATIONS

names = st.binary(min_size=1, max_size=20).filter(lambda name: name not in {b".", b".."} and not {0, 0x2F} & set(name))
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
# A busy machine is no failure: nothing here is about time.
settings.register_profile("door", deadline=None)
settings.load_profile("door")

CURRENT = Validators('"now"', 1_000)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(st.lists(names, max_size=6))
def test_a_path_that_was_written_is_read_back(path: list[bytes]) -> None:
    assert split_path(encode_path(path).encode()) == tuple(path)


@given(st.binary(max_size=40))
@example(b"%2e%2E")
@example(b"a%2fb")
def test_no_text_is_read_as_a_name_that_leaves_its_directory(raw: bytes) -> None:
    try:
        found = split_path(raw)
    except Fault as fault:
        assert fault.kind is Kind.INVALID
    else:
        assert all(name not in {b"", b".", b".."} and b"/" not in name and b"\0" not in name for name in found)
        assert split_path(encode_path(found).encode()) == found


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


@given(documents)
def test_depth_is_counted_without_parsing(value: object) -> None:
    assert depth_of(json.dumps(value).encode()) == depth(value)
    assert depth_of(json.dumps(value, ensure_ascii=False).encode()) == depth(value)


@given(st.dictionaries(st.text(max_size=8), documents, max_size=5))
def test_what_is_within_the_limits_is_read_as_it_was_sent(value: dict[str, object]) -> None:
    assert parse_document(json.dumps(value).encode(), Limits()) == value


@given(st.binary(max_size=60))
@example(b"[" * 2_000)
@example(b'"' + b"\\" * 2_001)
def test_any_other_bytes_are_refused_and_nothing_else_happens(text: bytes) -> None:
    try:
        assert isinstance(parse_document(text, Limits()), dict)
    except Fault as fault:
        assert fault.kind is Kind.INVALID


@given(st.integers(0, 50), st.text("bytes=-0123456789, ", max_size=14).map(lambda text: "bytes=" + text))
def test_a_range_is_inside_the_file_or_refused(size: int, header: str) -> None:
    try:
        found = select_range({"range": header}, CURRENT, size)
    except Refusal as refusal:
        assert refusal.status == 416
        assert refusal.headers["content-range"] == f"bytes */{size}"
    else:
        assert found is None or 0 <= found[0] < found[1] <= size


@pytest.mark.parametrize(
    ("method", "headers", "verdict"),
    [
        ("GET", {}, Verdict.PROCEED),
        ("GET", {"if-none-match": '"now"'}, Verdict.NOT_MODIFIED),
        ("HEAD", {"if-none-match": 'W/"now", "x"'}, Verdict.NOT_MODIFIED),
        ("GET", {"if-none-match": "*"}, Verdict.NOT_MODIFIED),
        ("GET", {"if-none-match": '"x", "y"'}, Verdict.PROCEED),
        ("PUT", {"if-none-match": '"now"'}, Verdict.FAILED),
        ("PUT", {"if-match": '"x", "now"'}, Verdict.PROCEED),
        ("PUT", {"if-match": 'W/"now"'}, Verdict.FAILED),
        ("PUT", {"if-match": "*"}, Verdict.PROCEED),
        ("GET", {"if-modified-since": "Thu, 01 Jan 1970 00:16:40 GMT"}, Verdict.NOT_MODIFIED),
        ("GET", {"if-modified-since": "Thu, 01 Jan 1970 00:16:39 GMT"}, Verdict.PROCEED),
        ("GET", {"if-modified-since": "yesterday"}, Verdict.PROCEED),
        ("PUT", {"if-unmodified-since": "Thu, 01 Jan 1970 00:16:40 GMT"}, Verdict.PROCEED),
        ("PUT", {"if-unmodified-since": "yesterday"}, Verdict.FAILED),
        ("PUT", {"if-match": '"now"', "if-unmodified-since": "Thu, 01 Jan 1970 00:00:00 GMT"}, Verdict.PROCEED),
    ],
)
def test_conditions_are_judged_as_the_standard_says(method: str, headers: dict[str, str], verdict: Verdict) -> None:
    assert judge(method, headers, CURRENT) is verdict


def test_conditions_on_what_is_not_there() -> None:
    assert judge("PUT", {"if-none-match": "*"}, None) is Verdict.PROCEED
    assert judge("PUT", {"if-match": "*"}, None) is Verdict.FAILED


@given(st.integers(-(2**80), 2**80))
@example(0)
def test_any_time_can_be_told(value: int) -> None:
    assert len(render_nanoseconds(value)) == 30


@pytest.mark.parametrize("name", ["conditions", "guard", "limits", "listing", "names", "openapi", "problems", "routes"])
def test_rules_do_nothing_but_judge(name: str) -> None:
    path = Path(str(interfaces.__file__)).parent / "http" / f"{name}.py"
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
