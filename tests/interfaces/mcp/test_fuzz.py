"""Any arguments, however odd: a tool answers within its bounds and its schema, or says why not. Nothing else ever comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from interfaces.mcp.catalogue import TOOLS
from interfaces.mcp.tool import MAX_ANSWER
from tests.house_of_doors import HouseOfDoors, Started
from tests.interfaces.mcp.rooms import Desk, post, served, text_of


@pytest.fixture(scope="module")
def url(house: HouseOfDoors) -> Iterator[str]:
    with served(house) as base:
        yield base


WORDS = st.sampled_from(
    [
        "",
        "/",
        "src",
        "src/a.py",
        "README.md",
        "docs/one.md",
        "..",
        "a/../b",
        "main",
        "/memories",
        "/memories/n",
        "\\xff",
        "0.1.x",
        "5.5.",
        "*",
        "**",
    ]
)
SCALARS = (
    WORDS | st.text(max_size=30) | st.integers(-5, 2**70) | st.booleans() | st.none() | st.floats(allow_nan=False) | st.just("n/" * 3000)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=5
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    name = draw(st.sampled_from(sorted(TOOLS)))
    known = sorted(TOOLS[name].takes["properties"])
    arguments: dict[str, object] = draw(st.dictionaries(st.sampled_from(known), VALUES, max_size=len(known))) if known else {}
    for required in TOOLS[name].takes["required"]:
        if draw(st.integers(0, 9)):
            arguments.setdefault(required, draw(WORDS))
    if not draw(st.integers(0, 19)):
        arguments[draw(st.text(max_size=8))] = draw(SCALARS)
    return name, arguments


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(calls())
def test_any_call_answers_or_says_why_not(desk: Desk, call: tuple[str, dict[str, object]]) -> None:
    name, arguments = call
    result = TOOLS[name].answer(desk.room, arguments)
    text = text_of(result)
    assert text
    assert len(text) <= MAX_ANSWER + 1000
    if result.is_error:
        assert result.meta is not None
        assert result.meta["agent-nas/fault"]["code"] != "internal", text
    else:
        Draft202012Validator(TOOLS[name].gives).validate(json.loads(json.dumps(result.structured_content)))


MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": st.none() | st.integers() | st.text(max_size=5) | st.booleans(),
        "method": st.sampled_from(
            ["tools/call", "tools/list", "resources/read", "resources/list", "prompts/get", "completion/complete", "initialize", "x"]
        )
        | SCALARS,
        "params": VALUES
        | st.fixed_dictionaries(
            {},
            optional={
                "name": WORDS,
                "arguments": VALUES,
                "uri": WORDS,
                "cursor": SCALARS,
                "_meta": VALUES,
                "ref": VALUES,
                "argument": VALUES,
            },
        ),
    },
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.binary(max_size=60) | MESSAGES.map(lambda message: json.dumps(message).encode()),
    st.sampled_from(["", "2025-11-25", "2026-07-28", "tomorrow", "\x7f"]),
)
def test_any_body_is_answered_and_never_as_a_defect(url: str, run: Started, body: bytes, version: str) -> None:
    answer = post(url, body, run.secret, **({"mcp-protocol-version": version} if version else {}))
    assert 200 <= answer.status_code < 500, answer.text
    assert "Traceback" not in answer.text
    assert "Internal server error" not in answer.text, body
