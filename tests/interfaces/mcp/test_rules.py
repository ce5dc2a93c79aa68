"""What only thinks: paths, URIs, pages of text, tables of errors, and which tools a lease lists."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from interfaces.faults import Fault, Kind
from interfaces.mcp.catalogue import TOOLS
from interfaces.mcp.paths import parse_path, parse_uri, render_path, render_uri
from interfaces.mcp.reading import Position, find_line, parse_position, read_base64, read_text, render_position
from interfaces.mcp.telling import CODES
from interfaces.mcp.tool import Effect

NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: b"/" not in name and b"\0" not in name and name not in {b".", b".."})
PATHS = st.lists(NAMES, max_size=5).map(b"/".join)


@dataclass
class Bytes:
    """A handle over bytes, with short reads where the port allows them."""

    content: bytes
    node: int = 2

    def read(self, offset: int, size: int) -> bytes:
        return self.content[offset : offset + size]

    def write(self, offset: int, data: bytes) -> int:
        raise AssertionError

    def sync(self) -> None:
        raise AssertionError

    def close(self) -> None:
        return


@dataclass(frozen=True)
class Holder:
    actions: frozenset[str] | None
    paths: tuple[str, ...] = ("**",)
    principal: str = "coder"
    lease: str = "l"
    run: str = "r"


@given(PATHS)
def test_a_path_that_is_shown_can_be_given_back(path: bytes) -> None:
    assert parse_path(render_path(path)) == path


@given(PATHS, st.text(min_size=1, max_size=20))
def test_a_resource_has_one_uri(path: bytes, branch: str) -> None:
    try:
        uri = render_uri(branch, path)
    except UnicodeEncodeError:
        return
    assert parse_uri(uri) == (branch, path)
    assert uri.isascii()


@given(st.text(max_size=60) | st.text(max_size=40).map(lambda text: "nas://" + text))
def test_any_text_is_a_path_and_a_uri_or_refused(text: str) -> None:
    for parse in (parse_path, parse_uri):
        try:
            parsed = parse(text)
        except Fault as fault:
            assert fault.kind is Kind.INVALID
            assert fault.hint
            continue
        path = parsed if isinstance(parsed, bytes) else parsed[1]
        assert not any(name in {b"", b".", b".."} for name in (path.split(b"/") if path else []))


@pytest.mark.parametrize("uri", ["nas://", "nas:///x", "http://main/x", "nas://main/%zz", "nas://main/../x", "nas://%ff/x", "nas://é/x"])
def test_what_names_no_resource_is_refused(uri: str) -> None:
    with pytest.raises(Fault) as refused:
        parse_uri(uri)
    assert refused.value.kind is Kind.INVALID


@given(st.text(st.sampled_from("aé€𝄞\n"), max_size=300), st.integers(12, 60), st.integers(1, 9))
def test_pages_joined_are_the_text_and_none_is_larger_than_its_budget(text: str, budget: int, lines: int) -> None:
    handle, position, joined = Bytes(text.encode()), Position(0, 1, "t"), ""
    while True:
        page = read_text(handle, position, lines, budget)
        assert len(page.text.encode()) <= budget
        assert page.text.count("\n") <= lines
        assert page.first_line == 1 + joined.count("\n")
        joined += page.text
        if page.following is None:
            break
        assert parse_position(render_position(page.following), "t") == page.following
        assert page.following.offset > position.offset
        position = page.following
    assert joined == text


@given(st.binary(max_size=100), st.integers(4, 40))
def test_raw_pages_joined_are_the_bytes(content: bytes, budget: int) -> None:
    import base64

    handle, position, joined = Bytes(content), Position(0, 0, "t"), b""
    while True:
        page = read_base64(handle, position, budget)
        assert len(page.text) <= max(budget, 4)
        joined += base64.b64decode(page.text)
        if page.following is None:
            break
        position = page.following
    assert joined == content


@given(st.text("a\n", max_size=40), st.integers(1, 50))
def test_a_line_is_found_where_it_begins(text: str, line: int) -> None:
    found = find_line(Bytes(text.encode()), line, "t")
    if line <= text.count("\n") + 1:
        assert text.encode()[: found.offset].count(b"\n") == line - 1
        assert found.line == line
    else:
        assert found.offset == len(text)


def test_a_line_too_far_away_is_not_looked_for() -> None:
    class Endless(Bytes):
        def read(self, offset: int, size: int) -> bytes:
            return b"x" * size

    with pytest.raises(Fault) as refused:
        find_line(Endless(b""), 2, "t")
    assert refused.value.kind is Kind.TOO_LARGE


@given(st.text(max_size=30))
def test_any_cursor_of_read_is_continued_or_refused(text: str) -> None:
    try:
        parse_position(text, "tag")
    except Fault as fault:
        assert fault.kind in {Kind.INVALID, Kind.CONFLICT}


def test_every_kind_has_a_code() -> None:
    assert set(CODES) == set(Kind)
    assert CODES[Kind.NOT_FOUND] == CODES[Kind.INVALID]


def test_every_tool_has_schemas_that_are_schemas_and_words_for_a_model() -> None:
    for tool in TOOLS.values():
        Draft202012Validator.check_schema(tool.takes)
        Draft202012Validator.check_schema(tool.gives)
        assert tool.takes["additionalProperties"] is False
        assert tool.description.endswith(".")
        shown = tool.describe()
        assert shown.annotations is not None
        assert shown.annotations.read_only_hint is (tool.effect is Effect.READS)
        assert shown.annotations.open_world_hint is (tool.name == "call_account")


READING = {"list", "read", "search", "status", "history", "diff", "gates", "memory_view"}


def test_a_lease_that_only_reads_lists_nothing_that_changes() -> None:
    listed = {name for name, tool in TOOLS.items() if tool.is_for(Holder(frozenset({"list", "read"})))}
    assert listed == READING
    assert all(TOOLS[name].effect is Effect.READS for name in listed)


def test_a_lease_that_does_not_reach_the_memory_lists_none_of_its_tools() -> None:
    everything = frozenset({"list", "read", "write", "delete", "propose"})
    for paths, reached in ((("src/**",), False), (("memory/notes/**",), True), (("README.md",), False), (("**",), True), (("*",), True)):
        listed = {name for name, tool in TOOLS.items() if tool.is_for(Holder(everything, paths))}
        assert ("memory_view" in listed) is reached, paths


def test_a_person_lists_every_tool() -> None:
    assert all(tool.is_for(Holder(None)) for tool in TOOLS.values())
